/* A stream is asked whether it is done, and waited for with a time limit. */
#include "acl/acl.h"
#include "session.h"

int main(void) {
  aclrtStream stream = StartSession();
  aclrtStreamStatus status = ACL_STREAM_STATUS_RESERVED;
  CHECK_ACL(aclrtStreamQuery(stream, &status));
  CHECK(status == ACL_STREAM_STATUS_COMPLETE);
  /* A task that waits for the host keeps the stream busy. */
  void* cell = MallocDevice(8);
  CHECK_ACL(aclrtMemset(cell, 8, 0, 8));
  void* block = MallocDevice(64);
  aclrtStream writer = NULL;
  CHECK_ACL(aclrtCreateStream(&writer));
  CHECK_ACL(aclrtValueWait(cell, 1, ACL_STREAM_WAIT_VALUE_GEQ, stream));
  CHECK_ACL(aclrtMemsetAsync(block, 64, 4, 64, stream));
  CHECK_ACL(aclrtStreamQuery(stream, &status));
  CHECK(status == ACL_STREAM_STATUS_NOT_READY);
  CHECK(aclrtSynchronizeStreamWithTimeout(stream, 20) == ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
  CHECK_ACL(aclrtValueWrite(cell, 1, 0, writer));
  CHECK_ACL(aclrtSynchronizeStreamWithTimeout(stream, 10000));
  CHECK_ACL(aclrtStreamQuery(stream, &status));
  CHECK(status == ACL_STREAM_STATUS_COMPLETE);
  unsigned char back[64];
  Download(back, block, 64, stream);
  CHECK(back[63] == 4);
  CHECK_ACL(aclrtDestroyStream(writer));
  CHECK_ACL(aclrtFree(cell));
  CHECK_ACL(aclrtFree(block));
  return EndSession(stream);
}
