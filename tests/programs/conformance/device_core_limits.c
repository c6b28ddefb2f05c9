/* A program leaves some cores to others: limits of the device, of a stream, and of a thread. */
#include "acl/acl.h"
#include "session.h"

int main(void) {
  aclrtStream stream = StartSession();
  uint32_t all = 0, value = 0;
  CHECK_ACL(aclrtGetDeviceResLimit(0, ACL_RT_DEV_RES_VECTOR_CORE, &all));
  CHECK(all >= 1);
  CHECK_ACL(aclrtSetDeviceResLimit(0, ACL_RT_DEV_RES_VECTOR_CORE, 1));
  CHECK_ACL(aclrtGetDeviceResLimit(0, ACL_RT_DEV_RES_VECTOR_CORE, &value));
  CHECK(value == 1);
  CHECK_ACL(aclrtResetDeviceResLimit(0));
  CHECK_ACL(aclrtGetDeviceResLimit(0, ACL_RT_DEV_RES_VECTOR_CORE, &value));
  CHECK(value == all);

  CHECK_ACL(aclrtSetStreamResLimit(stream, ACL_RT_DEV_RES_VECTOR_CORE, 1));
  CHECK_ACL(aclrtGetStreamResLimit(stream, ACL_RT_DEV_RES_VECTOR_CORE, &value));
  CHECK(value == 1);
  CHECK_ACL(aclrtUseStreamResInCurrentThread(stream));
  CHECK_ACL(aclrtGetResInCurrentThread(ACL_RT_DEV_RES_VECTOR_CORE, &value));
  CHECK(value == 1);
  CHECK_ACL(aclrtUnuseStreamResInCurrentThread(stream));
  CHECK_ACL(aclrtResetStreamResLimit(stream));
  CHECK_ACL(aclrtGetStreamResLimit(stream, ACL_RT_DEV_RES_VECTOR_CORE, &value));
  CHECK(value == all);

  void* block = MallocDevice(64);
  CHECK_ACL(aclrtMemsetAsync(block, 64, 3, 64, stream));
  CheckFilled(block, 64, 3, stream);
  CHECK_ACL(aclrtFree(block));
  return EndSession(stream);
}
