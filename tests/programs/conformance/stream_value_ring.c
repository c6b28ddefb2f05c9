/* Two streams pass a block to each other by values in device memory instead of events. */
#include "acl/acl.h"
#include "session.h"

enum { kRounds = 4, kBytes = 256 };

int main(void) {
  aclrtStream filler = StartSession(), reader = NULL;
  CHECK_ACL(aclrtCreateStream(&reader));
  uint64_t* cells = (uint64_t*)MallocDevice(16); /* filled; read */
  CHECK_ACL(aclrtMemset(cells, 16, 0, 16));
  void* block = MallocDevice(kBytes);
  char* all = (char*)MallocDevice(kRounds * kBytes);
  for (int round = 0; round < kRounds; ++round) {
    CHECK_ACL(aclrtValueWait(&cells[1], (uint64_t)round, ACL_STREAM_WAIT_VALUE_GEQ, filler));
    CHECK_ACL(aclrtMemsetAsync(block, kBytes, round + 10, kBytes, filler));
    CHECK_ACL(aclrtValueWrite(&cells[0], (uint64_t)round + 1, 0, filler));
    CHECK_ACL(aclrtValueWait(&cells[0], (uint64_t)round + 1, ACL_STREAM_WAIT_VALUE_EQ, reader));
    CHECK_ACL(aclrtMemcpyAsync(all + round * kBytes, kBytes, block, kBytes,
                               ACL_MEMCPY_DEVICE_TO_DEVICE, reader));
    CHECK_ACL(aclrtValueWrite(&cells[1], (uint64_t)round + 1, 0, reader));
  }
  CHECK_ACL(aclrtSynchronizeStream(filler));
  unsigned char back[kRounds * kBytes];
  Download(back, all, sizeof(back), reader);
  for (int i = 0; i < kRounds * kBytes; ++i) CHECK(back[i] == i / kBytes + 10);
  CHECK_ACL(aclrtFree(cells));
  CHECK_ACL(aclrtFree(block));
  CHECK_ACL(aclrtFree(all));
  CHECK_ACL(aclrtDestroyStream(reader));
  return EndSession(filler);
}
