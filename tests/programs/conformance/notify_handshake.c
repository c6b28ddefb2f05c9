/* Two streams that take turns by notifies, which a wait clears. */
#include "acl/acl.h"
#include "session.h"

enum { kRounds = 3, kBytes = 64 };

int main(void) {
  aclrtStream first = StartSession(), second = NULL;
  CHECK_ACL(aclrtCreateStream(&second));
  aclrtNotify filled = NULL, taken = NULL;
  CHECK_ACL(aclrtCreateNotify(&filled, ACL_NOTIFY_DEFAULT));
  CHECK_ACL(aclrtCreateNotify(&taken, ACL_NOTIFY_DEFAULT));
  uint32_t a = 0, b = 0;
  CHECK_ACL(aclrtGetNotifyId(filled, &a));
  CHECK_ACL(aclrtGetNotifyId(taken, &b));
  CHECK(a != b);
  void* block = MallocDevice(kBytes);
  char* all = (char*)MallocDevice(kRounds * kBytes);
  for (int round = 0; round < kRounds; ++round) {
    CHECK_ACL(aclrtMemsetAsync(block, kBytes, round + 20, kBytes, first));
    CHECK_ACL(aclrtRecordNotify(filled, first));
    CHECK_ACL(aclrtWaitAndResetNotify(filled, second, 0));
    CHECK_ACL(aclrtMemcpyAsync(all + round * kBytes, kBytes, block, kBytes,
                               ACL_MEMCPY_DEVICE_TO_DEVICE, second));
    CHECK_ACL(aclrtRecordNotify(taken, second));
    CHECK_ACL(aclrtWaitAndResetNotify(taken, first, 0));
  }
  unsigned char back[kRounds * kBytes];
  Download(back, all, sizeof(back), first);
  for (int i = 0; i < kRounds * kBytes; ++i) CHECK(back[i] == i / kBytes + 20);
  CHECK_ACL(aclrtDestroyNotify(filled));
  CHECK_ACL(aclrtDestroyNotify(taken));
  CHECK_ACL(aclrtFree(block));
  CHECK_ACL(aclrtFree(all));
  CHECK_ACL(aclrtDestroyStream(second));
  return EndSession(first);
}
