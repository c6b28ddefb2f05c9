/* Streams with a priority and with flags, and how many the device has left. */
#include "acl/acl.h"
#include "session.h"

int main(void) {
  aclrtStream stream = StartSession();
  int32_t least = -1, greatest = -1;
  CHECK_ACL(aclrtDeviceGetStreamPriorityRange(&least, &greatest));
  CHECK(greatest <= least);
  uint32_t before = 0, after = 0;
  CHECK_ACL(aclrtGetStreamAvailableNum(&before));
  aclrtStream fast = NULL;
  CHECK_ACL(aclrtCreateStreamWithConfig(&fast, (uint32_t)greatest,
                                        ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC));
  CHECK_ACL(aclrtGetStreamAvailableNum(&after));
  CHECK(after == before - 1);
  uint32_t priority = 99, flags = 99;
  CHECK_ACL(aclrtStreamGetPriority(fast, &priority));
  CHECK_ACL(aclrtStreamGetFlags(fast, &flags));
  CHECK(priority == (uint32_t)greatest);
  CHECK(flags == (ACL_STREAM_FAST_LAUNCH | ACL_STREAM_FAST_SYNC));
  int32_t a = -1, b = -1;
  CHECK_ACL(aclrtStreamGetId(stream, &a));
  CHECK_ACL(aclrtStreamGetId(fast, &b));
  CHECK(a != b);
  void* block = MallocDevice(64);
  CHECK_ACL(aclrtMemsetAsync(block, 64, 9, 64, fast));
  unsigned char back[64];
  Download(back, block, 64, fast);
  CHECK(back[0] == 9 && back[63] == 9);
  CHECK_ACL(aclrtFree(block));
  CHECK_ACL(aclrtDestroyStream(fast));
  return EndSession(stream);
}
