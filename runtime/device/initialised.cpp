#include "runtime/device/initialised.h"

#include <string_view>

#include "runtime/device/error.h"

namespace acltape::device {
namespace {

// Calls that stay after the end: they give back, wait, or begin anew. A final * stands for any
// rest.
constexpr std::string_view kLateCalls[] = {
    "aclInit",
    "aclInitCallback*",
    "aclFinalize*",
    "aclDestroy*",
    "acltdtDestroy*",
    "acltdtStopChannel",
    "acltdtUnbindQueueRoutes",
    "aclmdlRIDestroy",
    "aclmdlRIDestroyUnregisterCallback",
    "aclmdlFinalizeDump",
    "aclopDestroy*",
    "aclopStopDumpArgs",
    "aclprofDestroy*",
    "aclprofStop",
    "aclprofFinalize",
    "aclprofModelUnSubscribe",
    "aclrtAllocatorDestroyDesc",
    "aclrtAllocatorUnregister",
    "aclrtCntNotifyDestroy",
    "aclrtDestroy*",
    "aclrtExceptionInfoCallbackUnregister",
    "aclrtFree*",
    "aclrtHostUnregister",
    "aclrtReleaseMemAddress",
    "aclrtResetDevice",
    "aclrtResetDeviceForce",
    "aclrtSynchronize*",
    "aclrtUnSubscribeReport",
    "aclrtUnmapMem",
};

bool IsLate(std::string_view call) {
  for (std::string_view late : kLateCalls) {
    if (late == call || (late.back() == '*' && call.starts_with(late.substr(0, late.size() - 1)))) {
      return true;
    }
  }
  return false;
}

}  // namespace

constinit std::atomic<bool> finalized{false};

aclError RefuseAfterFinalize(const char* call) {
  if (IsLate(call)) return ACL_SUCCESS;
  return Fail(ACL_ERROR_UNINITIALIZE, "%s: called after aclFinalize; call aclInit again first",
              call);
}

}  // namespace acltape::device
