// Error reporting (section 11 of the rules).
#include "runtime/device/error.h"

#include "runtime/device/call.h"

using namespace acltape::device;

namespace {

aclError CheckLevel(aclrtLastErrLevel level, const char* call) {
  if (level == ACL_RT_THREAD_LEVEL) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, "%s: level %d is not 0", call, static_cast<int>(level));
}

}  // namespace

const char* aclGetRecentErrMsg(void) { return TakeMessage(); }

// ERR-09: the product distinguishes memory faults from all others, without details.
aclError aclrtGetErrorVerbose(int32_t deviceId, aclrtErrorInfo* errorInfo) {
  ACLTAPE_CALL("aclrtGetErrorVerbose");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(errorInfo, kCall, "errorInfo"));
  Device* device = DeviceAt(deviceId);
  if (device == nullptr) {
    return Fail(ACL_ERROR_RT_INVALID_DEVICEID, "%s: there is no device %d", kCall, deviceId);
  }
  *errorInfo = {};
  const aclError fault = device->fault.load();
  if (fault != ACL_SUCCESS) {
    errorInfo->errorType = IsMemoryFault(fault) ? ACL_RT_ERROR_MEMORY : ACL_RT_ERROR_OTHERS;
  }
  return ACL_SUCCESS;
}

aclError aclrtPeekAtLastError(aclrtLastErrLevel level) {
  ACLTAPE_RETURN_IF_FAILED(CheckLevel(level, "aclrtPeekAtLastError"));
  return PeekLastError();
}

aclError aclrtGetLastError(aclrtLastErrLevel level) {
  ACLTAPE_RETURN_IF_FAILED(CheckLevel(level, "aclrtGetLastError"));
  return TakeLastError();
}
