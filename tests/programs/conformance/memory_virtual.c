/* Addresses that are reserved first and get memory later, as pools that grow in place do it. */
#include "acl/acl.h"
#include "session.h"

int main(void) {
  aclrtStream stream = StartSession();
  aclrtPhysicalMemProp kind;
  memset(&kind, 0, sizeof(kind));
  kind.handleType = ACL_MEM_HANDLE_TYPE_NONE;
  kind.allocationType = ACL_MEM_ALLOCATION_TYPE_PINNED;
  kind.memAttr = ACL_HBM_MEM_HUGE;
  kind.location.id = 0;
  kind.location.type = ACL_MEM_LOCATION_TYPE_DEVICE;
  size_t piece = 0;
  CHECK_ACL(aclrtMemGetAllocationGranularity(&kind, ACL_RT_MEM_ALLOC_GRANULARITY_MINIMUM, &piece));
  CHECK(piece > 0);
  void* space = NULL;
  CHECK_ACL(aclrtReserveMemAddress(&space, 4 * piece, 0, NULL, 1));
  char* at = (char*)space;
  aclrtDrvMemHandle handles[2];
  for (int i = 0; i < 2; ++i) {
    CHECK_ACL(aclrtMallocPhysical(&handles[i], piece, &kind, 0));
    CHECK_ACL(aclrtMapMem(at + (size_t)i * piece, piece, 0, handles[i], 0));
  }
  /* One fill over both pieces. */
  CHECK_ACL(aclrtMemsetAsync(at + piece - 64, 128, 5, 128, stream));
  unsigned char back[128];
  Download(back, at + piece - 64, 128, stream);
  for (int i = 0; i < 128; ++i) CHECK(back[i] == 5);
  for (int i = 0; i < 2; ++i) {
    CHECK_ACL(aclrtUnmapMem(at + (size_t)i * piece));
    CHECK_ACL(aclrtFreePhysical(handles[i]));
  }
  CHECK_ACL(aclrtReleaseMemAddress(space));
  return EndSession(stream);
}
