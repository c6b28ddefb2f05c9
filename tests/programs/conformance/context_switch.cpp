// Two contexts of one device, each with a stream of its own, used in turn by one thread and then by
// a second one.
#include <thread>

#include "acl/acl.h"
#include "session.h"

int main() {
  CHECK_ACL(aclInit(nullptr));
  CHECK_ACL(aclrtSetDevice(0));
  aclrtContext contexts[2];
  aclrtStream streams[2];
  void* blocks[2];
  for (int i = 0; i < 2; ++i) {
    CHECK_ACL(aclrtCreateContext(&contexts[i], 0));  // and makes it current
    CHECK_ACL(aclrtCreateStream(&streams[i]));
    blocks[i] = MallocDevice(32);
  }
  aclrtContext current = nullptr;
  CHECK_ACL(aclrtGetCurrentContext(&current));
  CHECK(current == contexts[1]);
  CHECK(aclrtMemsetAsync(blocks[0], 32, 1, 32, streams[0]) == ACL_ERROR_RT_STREAM_CONTEXT);
  for (int i = 0; i < 2; ++i) {
    CHECK_ACL(aclrtSetCurrentContext(contexts[i]));
    CHECK_ACL(aclrtMemsetAsync(blocks[i], 32, i + 1, 32, streams[i]));
    CHECK_ACL(aclrtSynchronizeStream(streams[i]));
  }
  std::thread other([&] {
    CHECK(aclrtGetCurrentContext(&current) == ACL_ERROR_RT_CONTEXT_NULL);
    CHECK_ACL(aclrtSetCurrentContext(contexts[0]));
    CHECK_ACL(
        aclrtMemcpyAsync(blocks[1], 16, blocks[0], 16, ACL_MEMCPY_DEVICE_TO_DEVICE, streams[0]));
    CHECK_ACL(aclrtSynchronizeStream(streams[0]));
  });
  other.join();
  unsigned char back[32];
  CHECK_ACL(aclrtMemcpy(back, 32, blocks[1], 32, ACL_MEMCPY_DEVICE_TO_HOST));
  for (int i = 0; i < 32; ++i) CHECK(back[i] == (i < 16 ? 1 : 2));
  for (int i = 0; i < 2; ++i) {
    CHECK_ACL(aclrtSetCurrentContext(contexts[i]));
    CHECK_ACL(aclrtFree(blocks[i]));
    CHECK_ACL(aclrtDestroyStream(streams[i]));
    CHECK_ACL(aclrtDestroyContext(contexts[i]));
  }
  CHECK_ACL(aclrtResetDevice(0));
  CHECK_ACL(aclFinalize());
  printf("ok\n");
  return 0;
}
