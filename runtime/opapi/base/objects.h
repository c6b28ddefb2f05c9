// The objects that the opaque handles of aclnn/acl_meta.h mean on the soft device. libnnopbase.so
// creates and destroys them, libopapi.so reads them. Objects do not change, except by the calls
// that say so. They are not synchronised: as with the vendor's library, one thread at a time uses
// one object.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "acl/invoke/operator_table.h"
#include "aclnn/acl_meta.h"

namespace acltape::opapi {

// The shape of an output that is known only when its task has run: written by the stream's worker,
// read by aclGetViewShape. The task and the tensor share it, so either may go first.
class ReportedShape {
 public:
  void Set(std::vector<int64_t> sizes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    sizes_ = std::move(sizes);
    known_ = true;
  }

  // The shape, or `otherwise` while no task has set it.
  std::vector<int64_t> Get(const std::vector<int64_t>& otherwise) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return known_ ? sizes_ : otherwise;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<int64_t> sizes_;
  bool known_ = false;
};

}  // namespace acltape::opapi

// A view over device memory that belongs to the caller.
struct aclTensor {
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;       // elements
  std::vector<int64_t> storage_dims;  // the whole storage, as the caller described it
  int64_t offset = 0;                 // elements from `address` to the view's first element
  aclDataType dtype = ACL_DT_UNDEFINED;
  aclFormat format = ACL_FORMAT_UNDEFINED;
  void* address = nullptr;
  std::shared_ptr<acltape::opapi::ReportedShape> reported;  // set when a call's result decides it
};

// A host value with its own dtype, copied at creation.
struct aclScalar {
  alignas(16) unsigned char bytes[16];
  aclDataType dtype;
};

struct aclIntArray {
  std::vector<int64_t> values;
};

struct aclFloatArray {
  std::vector<float> values;
};

struct aclBoolArray {
  std::vector<uint8_t> values;
};

// Lists own their members: destroying the list destroys them.
struct aclTensorList {
  std::vector<aclTensor*> tensors;
};

struct aclScalarList {
  std::vector<aclScalar*> scalars;
};

namespace acltape::opapi {

// A kernel with all its arguments bound, ready to be submitted. Made by libopapi.so.
class BoundTask {
 public:
  virtual ~BoundTask() = default;
};

// Deep copies of an operator call's arguments, for executors that outlive them.
class ACL_FUNC_VISIBILITY OwnedArguments {
 public:
  OwnedArguments(const acl::OperatorInfo& op, const acl::ArgValue* args);
  OwnedArguments(const OwnedArguments&) = delete;
  OwnedArguments& operator=(const OwnedArguments&) = delete;
  ~OwnedArguments();

  const acl::ArgValue* values() const { return values_.data(); }

  // The tensors and lists that an index counts. A list counts as one, and absent ones count too. An
  // in-place operand is an input and an output.
  enum class Among { kAll, kInputs, kOutputs };
  // The nth; null when there are fewer or when it is of the other kind.
  aclTensor* Tensor(size_t n, Among among) const;
  aclTensorList* List(size_t n, Among among) const;

 private:
  const acl::ArgValue* Find(size_t n, Among among, acl::ArgKind kind) const;

  const acl::OperatorInfo& op_;
  std::vector<acl::ArgValue> values_;
  std::vector<std::string> strings_;
};

// Sets the thread's error message and returns `code`.
ACL_FUNC_VISIBILITY aclnnStatus Reject(aclnnStatus code, const std::string& message);

}  // namespace acltape::opapi

// The state between the two phases of a call. A plain executor is consumed by its launch; a
// repeatable one keeps copies of the arguments and binds them anew for each launch.
struct aclOpExecutor {
  const acltape::acl::OperatorInfo* op = nullptr;
  std::vector<acltape::acl::ArgValue> args;  // as given; the objects belong to the caller
  uint64_t workspace_size = 0;               // bytes
  std::unique_ptr<acltape::opapi::BoundTask> task;
  std::unique_ptr<acltape::opapi::OwnedArguments> owned;  // set when repeatable
};

// Short names of the status codes that operators give.
namespace acltape::opapi {
inline constexpr aclnnStatus kParamNull = ACLNN_ERR_PARAM_NULLPTR;
inline constexpr aclnnStatus kParamInvalid = ACLNN_ERR_PARAM_INVALID;
inline constexpr aclnnStatus kRuntimeError = ACLNN_ERR_RUNTIME_ERROR;
inline constexpr aclnnStatus kInner = ACLNN_ERR_INNER;
inline constexpr aclnnStatus kFindKernelError = ACLNN_ERR_INNER_FIND_KERNEL_ERROR;
}  // namespace acltape::opapi
