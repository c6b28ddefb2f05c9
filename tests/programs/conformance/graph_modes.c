/* A call that a capture forbids goes through while the thread is in the relaxed mode. */
#include "acl/acl.h"
#include "session.h"

int main(void) {
  aclrtStream stream = StartSession();
  void* block = MallocDevice(64);
  void* other = MallocDevice(64);
  aclmdlRI model = NULL;
  CHECK_ACL(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL));
  CHECK_ACL(aclrtMemsetAsync(block, 64, 8, 64, stream));
  aclmdlRICaptureMode mode = ACL_MODEL_RI_CAPTURE_MODE_RELAXED;
  CHECK_ACL(aclmdlRICaptureThreadExchangeMode(&mode));
  CHECK_ACL(aclrtMemset(other, 64, 1, 64)); /* at once, not captured */
  CHECK_ACL(aclmdlRICaptureThreadExchangeMode(&mode));
  CHECK(mode == ACL_MODEL_RI_CAPTURE_MODE_RELAXED);
  CHECK_ACL(aclrtMemcpyAsync(other, 32, block, 32, ACL_MEMCPY_DEVICE_TO_DEVICE, stream));
  CHECK_ACL(aclmdlRICaptureEnd(stream, &model));
  CHECK_ACL(aclmdlRIExecuteAsync(model, stream));
  unsigned char back[64];
  Download(back, other, 64, stream);
  for (int i = 0; i < 64; ++i) CHECK(back[i] == (i < 32 ? 8 : 1));
  CHECK_ACL(aclmdlRIDestroy(model));
  CHECK_ACL(aclrtFree(block));
  CHECK_ACL(aclrtFree(other));
  return EndSession(stream);
}
