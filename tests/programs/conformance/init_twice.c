/* Initialisation counts: a second aclInit says so, and the reference count goes down to zero. */
#include "acl/acl.h"
#include "session.h"

int main(void) {
  CHECK_ACL(aclInit(NULL));
  CHECK(aclInit(NULL) == ACL_ERROR_REPEAT_INITIALIZE);
  CHECK_ACL(aclrtSetDevice(0));
  const int numbers[4] = {1, 2, 3, 4};
  int back[4] = {0};
  void* block = Upload(numbers, sizeof(numbers));
  Download(back, block, sizeof(back), NULL);
  CHECK(memcmp(numbers, back, sizeof(back)) == 0);
  CHECK_ACL(aclrtFree(block));
  CHECK_ACL(aclrtResetDevice(0));
  uint64_t count = 99;
  CHECK_ACL(aclFinalizeReference(&count));
  CHECK(count == 1);
  CHECK_ACL(aclFinalizeReference(&count));
  CHECK(count == 0);
  printf("ok\n");
  return 0;
}
