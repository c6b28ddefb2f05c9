/* The facts about memory: how much is free, where an address lies, which block it is part of.
 */
#include "acl/acl.h"
#include "session.h"

int main(void) {
  aclrtStream stream = StartSession();
  size_t free_before = 0, free_after = 0, total = 0;
  const size_t bytes = 8 << 20;
  CHECK_ACL(aclrtGetMemInfo(ACL_HBM_MEM, &free_before, &total));
  CHECK(free_before > bytes && free_before <= total);
  char* block = (char*)MallocDevice(bytes);
  CHECK_ACL(aclrtGetMemInfo(ACL_HBM_MEM, &free_after, &total));
  CHECK(free_before - free_after >= bytes);
  CHECK((uintptr_t)block % 512 == 0);

  void* base = NULL;
  size_t size = 0;
  CHECK_ACL(aclrtMemGetAddressRange(block + 12345, &base, &size));
  CHECK(base == block && size >= bytes);
  aclrtPtrAttributes attributes;
  memset(&attributes, 0, sizeof(attributes));
  CHECK_ACL(aclrtPointerGetAttributes(block + 8, &attributes));
  CHECK(attributes.location.type == ACL_MEM_LOCATION_TYPE_DEVICE && attributes.location.id == 0);
  void* pinned = MallocPinned(64);
  CHECK_ACL(aclrtPointerGetAttributes(pinned, &attributes));
  CHECK(attributes.location.type == ACL_MEM_LOCATION_TYPE_HOST);
  memset(pinned, 5, 64);
  CHECK_ACL(aclrtMemcpyAsync(block, 64, pinned, 64, ACL_MEMCPY_HOST_TO_DEVICE, stream));
  CHECK_ACL(aclrtMemcpyAsync(block + 64, 64, block, 64, ACL_MEMCPY_DEVICE_TO_DEVICE, stream));
  CheckFilled(block, 128, 5, stream);
  CHECK_ACL(aclrtFreeHost(pinned));
  CHECK_ACL(aclrtFree(block));
  CHECK_ACL(aclrtGetMemInfo(ACL_HBM_MEM, &free_after, &total));
  CHECK(free_after == free_before);
  return EndSession(stream);
}
