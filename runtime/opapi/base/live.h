// The live objects of the operator library by kind, and the checks of handles that every function
// which takes one begins with (rule GEN-09).
#pragma once

#include <string>

#include "runtime/live_objects.h"
#include "runtime/opapi/base/objects.h"

namespace acltape::opapi {

// Never destroyed: destroy calls may come from destructors that run at exit (rule INIT-09).
template <typename Object>
LiveObjects<Object>& Live() {
  static LiveObjects<Object>& live = *new LiveObjects<Object>;
  return live;
}

// The name of an object's kind.
constexpr const char* NameOf(const aclTensor*) { return "aclTensor"; }
constexpr const char* NameOf(const aclScalar*) { return "aclScalar"; }
constexpr const char* NameOf(const aclIntArray*) { return "aclIntArray"; }
constexpr const char* NameOf(const aclFloatArray*) { return "aclFloatArray"; }
constexpr const char* NameOf(const aclBoolArray*) { return "aclBoolArray"; }
constexpr const char* NameOf(const aclTensorList*) { return "aclTensorList"; }
constexpr const char* NameOf(const aclScalarList*) { return "aclScalarList"; }
constexpr const char* NameOf(const aclOpExecutor*) { return "aclOpExecutor"; }

aclnnStatus RejectNull(const char* function, const char* argument);
// Says what the handle is instead of a live object of `kind`.
aclnnStatus RejectHandle(const char* function, const char* argument, const char* kind,
                         const void* handle);

// OK when the argument is a live object; else the status, with its message.
template <typename Object>
aclnnStatus CheckLive(const char* function, const char* argument, const Object* handle) {
  if (handle == nullptr) return RejectNull(function, argument);
  if (Live<Object>().Find(handle) != nullptr) return OK;
  return RejectHandle(function, argument, NameOf(handle), handle);
}

// Checks the objects among an operator's arguments, and the members of lists. NULL passes: whether
// an argument may be absent is for the operator to say.
ACL_FUNC_VISIBILITY aclnnStatus CheckObjects(const char* function, const acl::OperatorInfo& op,
                                             const acl::ArgValue* args);

// The same for functions of libopapi.so that are no operators.
ACL_FUNC_VISIBILITY aclnnStatus CheckArgument(const char* function, const char* argument,
                                              const aclTensor* tensor);
ACL_FUNC_VISIBILITY aclnnStatus CheckArgument(const char* function, const char* argument,
                                              const aclIntArray* array);

// Executors, for libopapi.so. A launch that uses an executor up claims it first, so that of two
// launches one is refused.
ACL_FUNC_VISIBILITY aclOpExecutor* CreateExecutor();
ACL_FUNC_VISIBILITY aclnnStatus CheckExecutor(const char* function, const aclOpExecutor* executor);
ACL_FUNC_VISIBILITY bool ClaimExecutor(aclOpExecutor* executor);
ACL_FUNC_VISIBILITY void FreeExecutor(aclOpExecutor* claimed);

}  // namespace acltape::opapi

#define ACLTAPE_OPAPI_RETURN_IF_REJECTED(expression)                             \
  do {                                                                           \
    if (const aclnnStatus status_ = (expression); status_ != OK) return status_; \
  } while (false)
