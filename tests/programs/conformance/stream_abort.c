/* A program that gives up on queued work: the stream is aborted and can be used again. */
#include "acl/acl.h"
#include "session.h"

int main(void) {
  aclrtStream stream = StartSession(), doomed = NULL;
  CHECK_ACL(aclrtCreateStream(&doomed));
  void* cell = MallocDevice(8);
  void* block = MallocDevice(32);
  CHECK_ACL(aclrtMemset(cell, 8, 0, 8));
  CHECK_ACL(aclrtMemset(block, 32, 1, 32));
  CHECK_ACL(aclrtValueWait(cell, 1, ACL_STREAM_WAIT_VALUE_EQ, stream)); /* until it is aborted */
  CHECK_ACL(aclrtMemsetAsync(block, 32, 2, 32, stream));
  CHECK_ACL(aclrtStreamAbort(stream));
  const uint64_t one = 1;
  /* A stream that is destroyed by force drops what it has not begun. */
  CHECK_ACL(aclrtValueWait(cell, 1, ACL_STREAM_WAIT_VALUE_EQ, doomed));
  CHECK_ACL(aclrtDestroyStreamForce(doomed));
  CHECK_ACL(aclrtMemcpy(cell, 8, &one, 8, ACL_MEMCPY_HOST_TO_DEVICE)); /* too late */
  CHECK_ACL(aclrtMemsetAsync(block, 16, 3, 16, stream));
  unsigned char back[32];
  Download(back, block, 32, stream);
  for (int i = 0; i < 32; ++i) CHECK(back[i] == (i < 16 ? 3 : 1));
  CHECK_ACL(aclrtFree(cell));
  CHECK_ACL(aclrtFree(block));
  return EndSession(stream);
}
