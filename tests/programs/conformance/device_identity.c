/* The identity and the load of a device, and whether kernels of another product would run on it. */
#include "acl/acl.h"
#include "session.h"

int main(void) {
  aclrtStream stream = StartSession();
  aclrtUuid first, second;
  CHECK_ACL(aclrtDeviceGetUuid(0, &first));
  CHECK_ACL(aclrtDeviceGetUuid(0, &second));
  CHECK(memcmp(&first, &second, sizeof(first)) == 0);
  aclrtUtilizationInfo use;
  memset(&use, 0, sizeof(use));
  CHECK_ACL(aclrtGetDeviceUtilizationRate(0, &use));
  CHECK(use.memoryUtilization >= 0 && use.memoryUtilization <= 100);
  int32_t runs = -1;
  CHECK_ACL(aclrtCheckArchCompatibility(aclrtGetSocName(), &runs));
  CHECK(runs == 1);
  void* block = MallocDevice(256);
  CHECK_ACL(aclrtMemsetAsync(block, 256, 1, 256, stream));
  CheckFilled(block, 256, 1, stream);
  CHECK_ACL(aclrtFree(block));
  return EndSession(stream);
}
