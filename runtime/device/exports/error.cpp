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

aclError aclrtPeekAtLastError(aclrtLastErrLevel level) {
  ACLTAPE_RETURN_IF_FAILED(CheckLevel(level, "aclrtPeekAtLastError"));
  return PeekLastError();
}

aclError aclrtGetLastError(aclrtLastErrLevel level) {
  ACLTAPE_RETURN_IF_FAILED(CheckLevel(level, "aclrtGetLastError"));
  return TakeLastError();
}
