// Calls an operator of the soft device through the operator table, with libtorch tensors as device
// memory (the soft device's memory is the host's), and compares results bit by bit.
#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "acl/acl.h"
#include "acl/invoke/operator_table.h"

namespace acltape::opapi {

constexpr int kReject = 161002;  // the first phase found a mistake in the arguments

// The device's message of the last error of this thread, which it then forgets; empty without one.
std::string TakeMessage();

struct Null {};

// The integer arrays and the plain numbers of calls; the operator table says what becomes of them.
using Arg =
    std::variant<Null, at::Tensor, std::vector<at::Tensor>, at::Scalar, std::vector<at::Scalar>,
                 std::vector<int64_t>, bool, int, int64_t, double, at::ScalarType, const char*>;
using Args = std::vector<Arg>;

// The objects of one call, freed with it; keeps its tensors' memory alive.
class PackedCall {
 public:
  PackedCall(const char* name, Args args);
  PackedCall(const PackedCall&) = delete;
  PackedCall& operator=(const PackedCall&) = delete;
  ~PackedCall();

  aclnnStatus Prepare();
  // Uses a workspace of its own when the operator asks for one.
  aclnnStatus Launch(aclrtStream stream);

  const acl::OperatorInfo& op() const { return *op_; }
  const Args& args() const { return args_; }
  const acl::ArgValue* values() const { return values_.data(); }
  uint64_t workspace_size() const { return workspace_size_; }
  aclOpExecutor* executor() const { return executor_; }
  aclTensor* tensor(int i) const { return acl::Unpack<aclTensor*>(values_[i]); }

 private:
  const acl::OperatorInfo* op_;
  Args args_;
  std::vector<acl::ArgValue> values_;
  std::vector<std::vector<char>> workspaces_;
  uint64_t workspace_size_ = 0;
  aclOpExecutor* executor_ = nullptr;
};

aclTensor* ViewOf(const at::Tensor& tensor);
// The first byte of the tensor's storage.
void* StorageOf(const at::Tensor& tensor);

// RunOperator calls this before anything else; null at first.
using CallObserver = void (*)(const char* name, const Args& args);
CallObserver& BeforeEachCall();
// And this after each call that succeeded; null at first.
CallObserver& AfterEachSuccess();

// Both phases and a synchronise; the first status that is not 0, with its message in LastMessage().
int RunOperator(const char* name, const Args& args);
// The same for a call whose handles the test has changed. Its results keep their shapes.
int RunPacked(PackedCall& call);
std::string LastMessage();

// The sizes of outputs, by their position, where the handle reports others after a call than the
// tensor was given: the number of results depends on the data.
using Shapes = std::map<int, std::vector<int64_t>>;
// The shapes that the last RunOperator reported.
const Shapes& ReportedShapes();

// The stream that RunOperator uses. Initialises the device at the first call.
aclrtStream TestStream();

// Same dtype, sizes and bits of every element (NaN payloads count).
testing::AssertionResult SameBits(const at::Tensor& actual, const at::Tensor& expected);

// Runs the operator and compares the tensors at the named positions with what they should hold.
testing::AssertionResult Gives(const char* name, const Args& args,
                               const std::map<int, at::Tensor>& expected);

// Appends outputs to `args` in the shapes and strides of `expected`, and then `tail`; runs and
// compares. Undefined expected tensors become NULL arguments.
void Check(const char* name, Args args, const std::vector<at::Tensor>& expected, Args tail = {});

// Runs an in-place operator and compares its first argument.
void CheckInplace(const char* name, const Args& args, const at::Tensor& expected);

// A tensor like `model` (sizes, strides, dtype) filled with a pattern that no result has.
at::Tensor Unwritten(const at::Tensor& model);

// The views that operators must cope with, of seeded values in [low, high): 0-dim, empty, vector,
// dense, transposed, strided with an offset, expanded.
struct NamedTensor {
  std::string name;
  at::Tensor tensor;
};
std::vector<NamedTensor> Views(at::ScalarType dtype, double low = -2, double high = 2);

at::Tensor Random(at::IntArrayRef sizes, at::ScalarType dtype = at::kFloat, double low = -2,
                  double high = 2);

// Index tensors with elements in [0, bound).
at::Tensor Indices(at::IntArrayRef sizes, int64_t bound, at::ScalarType dtype = at::kLong);

}  // namespace acltape::opapi
