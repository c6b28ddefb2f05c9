/* A device that is reset forgets everything, and can be set again. */
#include "acl/acl.h"
#include "session.h"

static void Work(unsigned char value) {
  void* block = MallocDevice(128);
  aclrtStream stream = NULL;
  CHECK_ACL(aclrtCreateStream(&stream));
  CHECK_ACL(aclrtMemsetAsync(block, 128, value, 128, stream));
  CHECK_ACL(aclrtSynchronizeDevice());
  unsigned char back[128];
  Download(back, block, 128, stream);
  for (int i = 0; i < 128; ++i) CHECK(back[i] == value);
  CHECK_ACL(aclrtDestroyStream(stream));
  CHECK_ACL(aclrtFree(block));
}

int main(void) {
  CHECK_ACL(aclInit(NULL));
  int32_t device = 0;
  CHECK(aclrtGetDevice(&device) == ACL_ERROR_RT_CONTEXT_NULL);
  CHECK_ACL(aclrtSetDevice(0));
  CHECK_ACL(aclrtSetDevice(0)); /* counts: two resets follow */
  Work(1);
  CHECK_ACL(aclrtResetDevice(0));
  Work(2);
  CHECK_ACL(aclrtResetDevice(0));
  CHECK(aclrtGetDevice(&device) == ACL_ERROR_RT_CONTEXT_NULL);
  CHECK(aclrtSetDevice(999) == ACL_ERROR_RT_INVALID_DEVICEID);
  CHECK_ACL(aclrtSetDevice(0));
  Work(3);
  CHECK_ACL(aclrtSynchronizeDeviceWithTimeout(1000));
  CHECK_ACL(aclrtResetDeviceForce(0));
  CHECK_ACL(aclFinalize());
  printf("ok\n");
  return 0;
}
