/* Fills by bytes and by words, whole and in part. */
#include "acl/acl.h"
#include "session.h"

enum { kWords = 64 };

int main(void) {
  aclrtStream stream = StartSession();
  uint32_t* block = (uint32_t*)MallocDevice(kWords * 4);
  uint32_t back[kWords];
  CHECK_ACL(aclrtMemset(block, kWords * 4, 0xAB, kWords * 4));
  CHECK_ACL(aclrtMemsetD32Async(block + 16, (kWords - 16) * 4, 0x12345678, 16, stream));
  CHECK_ACL(aclrtMemsetAsync(block + 32, (kWords - 32) * 4, 0, 16 * 4, stream));
  Download(back, block, sizeof(back), stream);
  for (int i = 0; i < kWords; ++i) {
    const uint32_t expected = i < 16 || i >= 48 ? 0xABABABABu : i < 32 ? 0x12345678u : 0;
    CHECK(back[i] == expected);
  }
  CHECK_ACL(aclrtMemsetD32(block, kWords * 4, 7, kWords));
  Download(back, block, sizeof(back), stream);
  for (int i = 0; i < kWords; ++i) CHECK(back[i] == 7);
  CHECK(aclrtMemset(block, 8, 0, 16) != 0); /* more than the block holds, as the caller says */
  CHECK_ACL(aclrtFree(block));
  return EndSession(stream);
}
