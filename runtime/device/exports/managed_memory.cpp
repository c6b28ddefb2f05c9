// Memory that host and device share by pages. This product has none: its functions are there and
// refuse (MEM-17), so that a program which asks for such memory links, and finds its other way.
#include "runtime/device/call.h"

using namespace acltape::device;

namespace {

aclError Refuse(const char* call) {
  return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
              "%s: this product has no memory that moves between host and device by itself; use "
              "aclrtMalloc or aclrtMallocHost",
              call);
}

}  // namespace

aclError aclrtMemAllocManaged(void** ptr, uint64_t, uint32_t flag) {
  ACLTAPE_CALL("aclrtMemAllocManaged");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(ptr, kCall, "ptr"));
  if (flag != ACL_RT_MEM_ATTACH_GLOBAL) {
    return Fail(ACL_ERROR_INVALID_PARAM, "%s: flag %u is not %d (ACL_RT_MEM_ATTACH_GLOBAL)", kCall,
                flag, ACL_RT_MEM_ATTACH_GLOBAL);
  }
  return Refuse(kCall);
}

aclError aclrtMemManagedAdvise(const void* const, uint64_t, aclrtMemManagedAdviseType,
                               aclrtMemManagedLocation) {
  ACLTAPE_CALL("aclrtMemManagedAdvise");
  return Refuse(kCall);
}

aclError aclrtMemManagedGetAttr(aclrtMemManagedRangeAttribute, const void*, size_t, void*, size_t) {
  ACLTAPE_CALL("aclrtMemManagedGetAttr");
  return Refuse(kCall);
}

aclError aclrtMemManagedGetAttrs(aclrtMemManagedRangeAttribute*, size_t, const void*, size_t,
                                 void**, size_t*) {
  ACLTAPE_CALL("aclrtMemManagedGetAttrs");
  return Refuse(kCall);
}

aclError aclrtMemManagedPrefetchAsync(const void*, size_t, aclrtMemManagedLocation, uint32_t,
                                      aclrtStream) {
  ACLTAPE_CALL("aclrtMemManagedPrefetchAsync");
  return Refuse(kCall);
}

aclError aclrtMemManagedPrefetchBatchAsync(const void**, size_t*, size_t, aclrtMemManagedLocation*,
                                           size_t*, size_t, uint64_t, aclrtStream) {
  ACLTAPE_CALL("aclrtMemManagedPrefetchBatchAsync");
  return Refuse(kCall);
}
