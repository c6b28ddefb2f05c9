// The part that all operations of libatb.so share. An operation is issued as calls of operators of
// libopapi.so, so that streams, captures and recordings see calls that they know. Where no operator
// of the toolkit means the same, the operator is one of acl/data/atb_ops.json.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "aclnn/aclnn_base.h"
#include "runtime/compat/atb.h"

namespace atb {

using Sizes = std::vector<int64_t>;

Sizes SizesOf(const Tensor& tensor);
// Elements of all dims from `dim` on.
int64_t CountFrom(const Tensor& tensor, size_t dim);

// A tensor of the operators' interface over the memory of one of this interface, which is dense.
class View {
 public:
  enum class Matrix : uint8_t { kAsItIs, kTransposed };
  explicit View(const Tensor& tensor, Matrix matrix = Matrix::kAsItIs);
  View(const Tensor& tensor, Sizes sizes, Matrix matrix = Matrix::kAsItIs);
  // The first columns of rows that are as long as those of `whole`.
  View(const Tensor& tensor, const Sizes& sizes, const Sizes& whole);
  ~View();
  View(const View&) = delete;
  View& operator=(const View&) = delete;
  aclTensor* get() const { return handle_; }

 private:
  aclTensor* handle_ = nullptr;
};

// A number of the operators' interface for as long as a call of a first phase.
class Number {
 public:
  explicit Number(float value) : value_(value), handle_(aclCreateScalar(&value_, ACL_FLOAT)) {}
  ~Number() { aclDestroyScalar(handle_); }
  Number(const Number&) = delete;
  Number& operator=(const Number&) = delete;
  aclScalar* get() const { return handle_; }

 private:
  float value_;
  aclScalar* handle_;
};

// A tensor of lengths has one dim, and holds int32 in host memory. The second gives its numbers.
bool LieInHostMemory(const Tensor& tensor);
Sizes NumbersIn(const Tensor& tensor);

// Such numbers as an argument of an operator.
class HostNumbers {
 public:
  explicit HostNumbers(const Tensor& tensor) : HostNumbers(NumbersIn(tensor)) {}
  explicit HostNumbers(const Sizes& values);
  ~HostNumbers();
  HostNumbers(const HostNumbers&) = delete;
  HostNumbers& operator=(const HostNumbers&) = delete;
  aclIntArray* get() const { return handle_; }

 private:
  aclIntArray* handle_ = nullptr;
};

// Both phases of an operator that takes no workspace.
template <typename First, typename Second, typename... Args>
aclnnStatus IssueCall(First first, Second second, aclrtStream stream, Args... args) {
  uint64_t workspace = 0;
  aclOpExecutor* executor = nullptr;
  const aclnnStatus status = first(args..., &workspace, &executor);
  return status != 0 ? status : second(nullptr, workspace, executor, stream);
}

// The operators take no workspace.
class SoftOperation : public Operation {
 public:
  SoftOperation(const char* name, uint32_t inputs, uint32_t outputs)
      : name_(name), inputs_(inputs), outputs_(outputs) {}
  std::string GetName() const override { return name_; }
  // The caller brings the outputs.
  Status InferShape(const SVector<TensorDesc>&, SVector<TensorDesc>&) const override {
    return kInvalidParam;
  }
  uint32_t GetInputNum() const override { return inputs_; }
  uint32_t GetOutputNum() const override { return outputs_; }
  Status Setup(const VariantPack& pack, uint64_t& workspace_size, Context* context) override;
  Status Execute(const VariantPack& pack, uint8_t* workspace, uint64_t workspace_size,
                 Context* context) override;

 protected:
  // Null, or what the tensors lack: the rest of a sentence that begins with the operation's name.
  virtual const char* Lacks(const VariantPack& pack) const = 0;
  virtual aclnnStatus Issue(const VariantPack& pack, aclrtStream stream) const = 0;

 private:
  const char* name_;
  uint32_t inputs_, outputs_;
};

// A parameter, and whether the soft device offers its value.
struct Parameter {
  bool offered;
  const char* name;
  double value;
};

// kNoError when all values are offered; else says which is not.
Status Offered(const char* operation, std::initializer_list<Parameter> parameters);

}  // namespace atb
