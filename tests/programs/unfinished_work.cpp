// Streams and devices that end while work is on its way, and streams that two threads share.
//
//   unfinished_work
//
// Nothing here waits for what it does not need.
#include <atomic>
#include <thread>
#include <vector>

#include "acl/acl.h"
#include "sample.h"

namespace {

constexpr size_t kBytes = 1 << 20;
constexpr int kFills = 8;

void Fill(aclrtStream stream, void* block) {
  for (int i = 0; i < kFills; ++i) {
    CHECK_ACL(aclrtMemsetAsync(block, kBytes, i, kBytes, stream));
  }
}

// The stream ends with its work undone, or done at the latest then.
void EndOfStreams(void* block) {
  for (int round = 0; round < 3; ++round) {
    aclrtStream stream = nullptr;
    CHECK_ACL(aclrtCreateStream(&stream));
    Fill(stream, block);
    CHECK_ACL(round == 1 ? aclrtDestroyStreamForce(stream) : aclrtDestroyStream(stream));
  }
}

void TwoThreadsOnOneStream(void* block) {
  aclrtStream stream = nullptr;
  CHECK_ACL(aclrtCreateStream(&stream));
  std::atomic<int> ready{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 2; ++thread) {
    threads.emplace_back([&] {
      CHECK_ACL(aclrtSetDevice(0));
      ready.fetch_add(1);
      while (ready.load() < 2) {
      }
      for (int round = 0; round < 40; ++round) Fill(stream, block);
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK_ACL(aclrtSynchronizeStream(stream));
  CHECK_ACL(aclrtDestroyStream(stream));
}

void EndOfDevice() {
  void* block = MallocDevice(kBytes);
  aclrtStream stream = nullptr;
  CHECK_ACL(aclrtCreateStream(&stream));
  Fill(stream, block);
  CHECK_ACL(aclrtResetDeviceForce(0));
}

}  // namespace

int main() {
  CHECK_ACL(aclInit(nullptr));
  CHECK_ACL(aclrtSetDevice(0));
  void* block = MallocDevice(kBytes);
  EndOfStreams(block);
  TwoThreadsOnOneStream(block);
  CHECK_ACL(aclrtFree(block));
  EndOfDevice();
  // The device is there again.
  CHECK_ACL(aclrtSetDevice(0));
  block = MallocDevice(kBytes);
  Fill(nullptr, block);
  CHECK_ACL(aclrtSynchronizeDevice());
  unsigned char byte = 0;
  CHECK_ACL(aclrtMemcpy(&byte, 1, block, 1, ACL_MEMCPY_DEVICE_TO_HOST));
  printf("the last fill wrote %d\n", byte);
  Fill(nullptr, block);  // the program ends before this is done
  CHECK_ACL(aclrtResetDevice(0));
  CHECK_ACL(aclFinalize());
  return 0;
}
