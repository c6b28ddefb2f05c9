/* Two graphs on two streams, ordered by an event that one records and the other waits for. */
#include "acl/acl.h"
#include "session.h"

int main(void) {
  aclrtStream first = StartSession(), second = NULL;
  CHECK_ACL(aclrtCreateStream(&second));
  aclrtEvent ready = NULL;
  CHECK_ACL(aclrtCreateEventExWithFlag(&ready, ACL_EVENT_SYNC));
  void* block = MallocDevice(64);
  void* copy = MallocDevice(64);
  aclmdlRI fill = NULL, take = NULL;
  CHECK_ACL(aclmdlRICaptureBegin(first, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL));
  CHECK_ACL(aclrtMemsetAsync(block, 64, 33, 64, first));
  CHECK_ACL(aclrtRecordEventWithFlag(ready, first, ACL_EVENT_RECORD_EXTERNAL));
  CHECK_ACL(aclmdlRICaptureEnd(first, &fill));
  CHECK_ACL(aclmdlRICaptureBegin(second, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL));
  CHECK_ACL(aclrtStreamWaitEventWithFlag(second, ready, 0, ACL_EVENT_WAIT_EXTERNAL));
  CHECK_ACL(aclrtMemcpyAsync(copy, 64, block, 64, ACL_MEMCPY_DEVICE_TO_DEVICE, second));
  CHECK_ACL(aclmdlRICaptureEnd(second, &take));
  for (int round = 0; round < 2; ++round) {
    CHECK_ACL(aclrtMemset(block, 64, 0, 64));
    CHECK_ACL(aclmdlRIExecuteAsync(fill, first));
    CHECK_ACL(aclmdlRIExecuteAsync(take, second));
    unsigned char back[64];
    Download(back, copy, 64, second);
    for (int i = 0; i < 64; ++i) CHECK(back[i] == 33);
    CHECK_ACL(aclrtSynchronizeStream(first));
  }
  CHECK_ACL(aclmdlRIDestroy(fill));
  CHECK_ACL(aclmdlRIDestroy(take));
  CHECK_ACL(aclrtDestroyEvent(ready));
  CHECK_ACL(aclrtFree(block));
  CHECK_ACL(aclrtFree(copy));
  CHECK_ACL(aclrtDestroyStream(second));
  return EndSession(first);
}
