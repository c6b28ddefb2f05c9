/* The questions that a program asks about its device before it decides how to split its work. */
#include "acl/acl.h"
#include "session.h"

int main(void) {
  uint32_t count = 0;
  CHECK(aclrtGetSocName() != NULL);
  CHECK(strncmp(aclrtGetSocName(), "Ascend", 6) == 0);
  CHECK_ACL(aclInit(NULL));
  CHECK_ACL(aclrtGetDeviceCount(&count));
  CHECK(count >= 1);
  CHECK_ACL(aclrtSetDevice(0));
  int32_t device = -1;
  CHECK_ACL(aclrtGetDevice(&device));
  CHECK(device == 0);
  aclrtRunMode mode = ACL_DEVICE;
  CHECK_ACL(aclrtGetRunMode(&mode));
  CHECK(mode == ACL_HOST);

  int64_t cubes = 0, vectors = 0, value = 0;
  CHECK_ACL(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_CUBE_CORE_NUM, &cubes));
  CHECK_ACL(aclrtGetDeviceInfo(0, ACL_DEV_ATTR_VECTOR_CORE_NUM, &vectors));
  CHECK(cubes >= 1 && vectors >= 1);
  CHECK_ACL(aclGetDeviceCapability(0, ACL_DEVICE_INFO_VECTOR_CORE_NUM, &value));
  CHECK(value == vectors);
  int32_t supported = -1;
  CHECK_ACL(aclrtGetDeviceCapability(0, ACL_FEATURE_SYSTEM_MEMQ_EVENT_CROSS_DEV, &supported));
  CHECK(supported == ACL_DEV_FEATURE_SUPPORT || supported == ACL_DEV_FEATURE_NOT_SUPPORT);
  aclrtDeviceStatus status = ACL_RT_DEVICE_STATUS_END;
  CHECK_ACL(aclrtQueryDeviceStatus(0, &status));
  CHECK(status == ACL_RT_DEVICE_STATUS_NORMAL);

  /* One element for each vector core, which the device fills. */
  const size_t bytes = (size_t)vectors * sizeof(uint32_t);
  void* block = MallocDevice(bytes);
  CHECK_ACL(aclrtMemsetD32(block, bytes, 0xC0FFEE, (size_t)vectors));
  uint32_t* back = (uint32_t*)malloc(bytes);
  Download(back, block, bytes, NULL);
  for (int64_t i = 0; i < vectors; ++i) CHECK(back[i] == 0xC0FFEE);
  free(back);
  CHECK_ACL(aclrtFree(block));
  CHECK_ACL(aclrtResetDevice(0));
  CHECK_ACL(aclFinalize());
  printf("ok\n");
  return 0;
}
