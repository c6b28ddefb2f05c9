/* An event is asked instead of waited for. */
#include "acl/acl.h"
#include "session.h"

int main(void) {
  aclrtStream stream = StartSession(), writer = NULL;
  CHECK_ACL(aclrtCreateStream(&writer));
  aclrtEvent event = NULL;
  CHECK_ACL(aclrtCreateEvent(&event));
  void* cell = MallocDevice(8);
  void* block = MallocDevice(16);
  CHECK_ACL(aclrtMemset(cell, 8, 0, 8));
  CHECK_ACL(aclrtValueWait(cell, 5, ACL_STREAM_WAIT_VALUE_EQ, stream));
  CHECK_ACL(aclrtMemsetAsync(block, 16, 3, 16, stream));
  CHECK_ACL(aclrtRecordEvent(event, stream));
  aclrtEventRecordedStatus recorded = ACL_EVENT_RECORDED_STATUS_COMPLETE;
  CHECK_ACL(aclrtQueryEventStatus(event, &recorded));
  CHECK(recorded == ACL_EVENT_RECORDED_STATUS_NOT_READY);
  aclrtEventStatus status = ACL_EVENT_STATUS_RESERVED;
  CHECK_ACL(aclrtQueryEvent(event, &status));
  CHECK(status == ACL_EVENT_STATUS_NOT_READY);
  CHECK(aclrtSynchronizeEventWithTimeout(event, 20) != 0);
  CHECK_ACL(aclrtValueWrite(cell, 5, 0, writer));
  CHECK_ACL(aclrtSynchronizeEventWithTimeout(event, 10000));
  CHECK_ACL(aclrtQueryEventStatus(event, &recorded));
  CHECK(recorded == ACL_EVENT_RECORDED_STATUS_COMPLETE);
  CHECK_ACL(aclrtSynchronizeStream(writer));
  CheckFilled(block, 16, 3, stream);
  CHECK_ACL(aclrtDestroyEvent(event));
  CHECK_ACL(aclrtFree(cell));
  CHECK_ACL(aclrtFree(block));
  CHECK_ACL(aclrtDestroyStream(writer));
  return EndSession(stream);
}
