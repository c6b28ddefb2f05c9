// Records and waits with a flag (EVT-19, EVT-20, section 17 of the rules).
#include "runtime/device/call.h"
#include "runtime/device/capture/external.h"

using namespace acltape::device;

namespace {

// EVT-19.
aclError CheckFlag(uint32_t flag, const char* call) {
  if (flag <= ACL_EVENT_RECORD_EXTERNAL) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, "%s: flag %u is not 0 or 1", call, flag);
}

}  // namespace

aclError aclrtRecordEventWithFlag(aclrtEvent event, aclrtStream stream, uint32_t flag) {
  ACLTAPE_CALL("aclrtRecordEventWithFlag");
  ACLTAPE_RETURN_IF_FAILED(CheckFlag(flag, kCall));
  Event* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindEvent(event, kCall, &found));
  Stream* on = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindStream(stream, kCall, &on));
  if (flag == 0) return RecordEvent(*found, *on);
  ACLTAPE_RETURN_IF_FAILED(found->FixRecordFlag(flag, kCall));
  return RecordExternal(*found, *on);
}

aclError aclrtStreamWaitEventWithFlag(aclrtStream stream, aclrtEvent event, uint32_t timeout,
                                      uint32_t flag) {
  ACLTAPE_CALL("aclrtStreamWaitEventWithFlag");
  ACLTAPE_RETURN_IF_FAILED(CheckFlag(flag, kCall));
  if (flag != 0 && timeout != 0) {
    return Fail(ACL_ERROR_INVALID_PARAM, "%s: an external wait has no time-out; it must be 0",
                kCall);
  }
  Event* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindEvent(event, kCall, &found));
  Stream* on = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindStream(stream, kCall, &on));
  if (flag == 0) return WaitEvent(*on, *found, int64_t{timeout} * kSecond);
  ACLTAPE_RETURN_IF_FAILED(found->FixWaitFlag(flag, kCall));
  return WaitExternal(*on, *found);
}
