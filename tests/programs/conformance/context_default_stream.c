/* Work on the default stream, which is NULL or the one that the context names. */
#include "acl/acl.h"
#include "session.h"

int main(void) {
  CHECK_ACL(aclInit(NULL));
  uint32_t flags = 9;
  int32_t active = 9;
  CHECK_ACL(aclrtSetDevice(0));
  CHECK_ACL(aclrtGetPrimaryCtxState(0, NULL, &active));
  CHECK(active == 1);
  (void)flags;
  aclrtStream named = NULL;
  CHECK_ACL(aclrtCtxGetCurrentDefaultStream(&named));
  CHECK(named != NULL);
  void* block = MallocDevice(64);
  CHECK_ACL(aclrtMemsetAsync(block, 64, 1, 64, NULL));
  CHECK_ACL(
      aclrtMemsetAsync(block, 32, 2, 32, named)); /* after the first: it is the same stream */
  CHECK_ACL(aclrtSynchronizeStream(NULL));
  unsigned char back[64];
  CHECK_ACL(aclrtMemcpy(back, 64, block, 64, ACL_MEMCPY_DEVICE_TO_HOST));
  for (int i = 0; i < 64; ++i) CHECK(back[i] == (i < 32 ? 2 : 1));
  CHECK(aclrtDestroyStream(named) != 0);
  CHECK_ACL(aclrtFree(block));
  CHECK_ACL(aclrtResetDevice(0));
  CHECK_ACL(aclFinalize());
  printf("ok\n");
  return 0;
}
