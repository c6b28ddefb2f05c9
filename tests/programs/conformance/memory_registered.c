/* The program's own memory, registered so that the device reaches it. */
#include "acl/acl.h"
#include "session.h"

enum { kBytes = 8192 };

int main(void) {
  aclrtStream stream = StartSession();
  unsigned char* own = (unsigned char*)aligned_alloc(4096, kBytes);
  unsigned char* other = (unsigned char*)aligned_alloc(4096, kBytes);
  CHECK(own != NULL && other != NULL);
  for (int i = 0; i < kBytes; ++i) own[i] = (unsigned char)(i % 251);
  void* mapped = NULL;
  CHECK_ACL(aclrtHostRegister(own, kBytes, ACL_HOST_REGISTER_MAPPED, &mapped));
  CHECK(mapped != NULL);
  CHECK_ACL(aclrtHostRegisterV2(other, kBytes, ACL_HOST_REG_MAPPED));
  void* other_mapped = NULL;
  CHECK_ACL(aclrtHostGetDevicePointer(other, &other_mapped, 0));
  CHECK(other_mapped != NULL);
  void* block = MallocDevice(kBytes);
  CHECK_ACL(aclrtMemcpyAsync(block, kBytes, own, kBytes, ACL_MEMCPY_HOST_TO_DEVICE, stream));
  CHECK_ACL(aclrtMemcpyAsync(other, kBytes, block, kBytes, ACL_MEMCPY_DEVICE_TO_HOST, stream));
  CHECK_ACL(aclrtSynchronizeStream(stream));
  CHECK(memcmp(own, other, kBytes) == 0);
  CHECK_ACL(aclrtHostUnregister(own));
  CHECK_ACL(aclrtHostUnregister(other));
  free(own);
  free(other);
  CHECK_ACL(aclrtFree(block));
  return EndSession(stream);
}
