/* Notifies that nobody waited for are cleared together, so that the next wait is for a new record.
 */
#include "acl/acl.h"
#include "session.h"

int main(void) {
  aclrtStream first = StartSession(), second = NULL;
  CHECK_ACL(aclrtCreateStream(&second));
  aclrtNotify notifies[2];
  for (int i = 0; i < 2; ++i) {
    CHECK_ACL(aclrtCreateNotify(&notifies[i], ACL_NOTIFY_DEFAULT));
    CHECK_ACL(aclrtRecordNotify(notifies[i], first));
  }
  CHECK_ACL(aclrtSynchronizeStream(first));
  CHECK_ACL(aclrtNotifyBatchReset(notifies, 2));
  void* block = MallocDevice(64);
  CHECK_ACL(aclrtMemset(block, 64, 1, 64));
  CHECK_ACL(aclrtWaitAndResetNotify(notifies[0], second, 0));
  CHECK_ACL(aclrtMemsetAsync(block, 32, 2, 32, second));
  aclrtStreamStatus status = ACL_STREAM_STATUS_COMPLETE;
  CHECK_ACL(aclrtStreamQuery(second, &status));
  CHECK(status == ACL_STREAM_STATUS_NOT_READY);
  CHECK_ACL(aclrtMemsetAsync(block, 64, 3, 64, first));
  CHECK_ACL(aclrtRecordNotify(notifies[0], first));
  unsigned char back[64];
  Download(back, block, 64, second);
  for (int i = 0; i < 64; ++i) CHECK(back[i] == (i < 32 ? 2 : 3));
  for (int i = 0; i < 2; ++i) CHECK_ACL(aclrtDestroyNotify(notifies[i]));
  CHECK_ACL(aclrtFree(block));
  CHECK_ACL(aclrtDestroyStream(second));
  return EndSession(first);
}
