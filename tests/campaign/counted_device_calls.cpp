// A program over the ACL interface that counts its operators, so that a campaign can hold a trace
// against them.
//
//   counted_device_calls COUNTS CALLS CODE
//
// Two threads with a stream each launch CALLS additions; 0: until they are killed. COUNTS is a file
// of one number of 8 bytes per thread, which outlives the process. A thread counts an addition when
// its launch has returned. The program says what it did and ends with CODE.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_add.h"
#include "tests/programs/sample.h"

namespace {

constexpr int kThreads = 2;
constexpr int64_t kCount = 16;

void Work(volatile uint64_t* count, long calls) {
  CHECK_ACL(aclrtSetDevice(0));
  aclrtStream stream = nullptr;
  CHECK_ACL(aclrtCreateStream(&stream));
  void* memory = nullptr;
  CHECK_ACL(aclrtMalloc(&memory, kCount * sizeof(float), ACL_MEM_MALLOC_HUGE_FIRST));
  CHECK_ACL(aclrtMemset(memory, kCount * sizeof(float), 0, kCount * sizeof(float)));
  aclTensor* tensor = MakeTensor(ACL_FLOAT, 1, &kCount, memory);
  float one = 1;
  aclScalar* alpha = aclCreateScalar(&one, ACL_FLOAT);
  for (long call = 0; calls == 0 || call < calls; ++call) {
    RUN_OP(stream, aclnnInplaceAdd, tensor, tensor, alpha);
    *count = *count + 1;
    if (call % 64 == 0) CHECK_ACL(aclrtSynchronizeStream(stream));
  }
  CHECK_ACL(aclrtSynchronizeStream(stream));
  aclDestroyScalar(alpha);
  aclDestroyTensor(tensor);
  CHECK_ACL(aclrtFree(memory));
  CHECK_ACL(aclrtDestroyStream(stream));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 64;
  const int file = open(argv[1], O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0 || ftruncate(file, kThreads * 8) != 0) return 3;
  void* page = mmap(nullptr, kThreads * 8, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (page == MAP_FAILED) return 3;
  auto* counts = static_cast<volatile uint64_t*>(page);
  const long calls = std::atol(argv[2]);
  CHECK_ACL(aclInit(nullptr));
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(Work, counts + i, calls);
  for (std::thread& thread : threads) thread.join();
  CHECK_ACL(aclFinalize());
  std::printf("%ld additions in each of %d threads\n", calls, kThreads);
  return std::atoi(argv[3]);
}
