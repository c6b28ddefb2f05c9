/* Waits with a time limit that is not reached, and records and waits with flags. */
#include "acl/acl.h"
#include "session.h"

int main(void) {
  aclrtStream first = StartSession(), second = NULL;
  CHECK_ACL(aclrtCreateStream(&second));
  CHECK_ACL(aclrtSetOpWaitTimeout(120));
  aclrtEvent event = NULL;
  CHECK_ACL(aclrtCreateEventExWithFlag(&event, ACL_EVENT_SYNC));
  void* block = MallocDevice(64);
  CHECK_ACL(aclrtMemsetAsync(block, 64, 1, 64, first));
  CHECK_ACL(aclrtRecordEvent(event, first));
  CHECK_ACL(aclrtStreamWaitEventWithTimeout(second, event, 10000));
  CHECK_ACL(aclrtMemsetAsync(block, 32, 2, 32, second));
  CHECK_ACL(aclrtRecordEventWithFlag(event, second, ACL_EVENT_RECORD_DEFAULT));
  CHECK_ACL(aclrtStreamWaitEventWithFlag(first, event, 0, ACL_EVENT_WAIT_DEFAULT));
  CHECK_ACL(aclrtMemsetAsync(block, 16, 3, 16, first));
  unsigned char back[64];
  Download(back, block, 64, first);
  for (int i = 0; i < 64; ++i) CHECK(back[i] == (i < 16 ? 3 : i < 32 ? 2 : 1));
  CHECK_ACL(aclrtDestroyEvent(event));
  CHECK_ACL(aclrtFree(block));
  CHECK_ACL(aclrtDestroyStream(second));
  return EndSession(first);
}
