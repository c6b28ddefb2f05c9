// A program over the real agent that counts its own calls, so that a campaign can hold a trace
// against them.
//
//   counted_calls COUNTS CALLS CODE [PROCESSES]
//
// Two threads record CALLS calls each; 0: until they are killed. So do those of all but the first
// of PROCESSES processes, which the first one forks and waits for. COUNTS is a file of one number
// of 8 bytes per thread, which outlives the process. A thread counts a call when it is complete.
// Each twentieth call leaves a content. The program says what it did and ends with CODE.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "tests/campaign/recorded_content.h"
#include "tests/recorder/agent_call.h"

namespace acltape::test {
namespace {

constexpr int kThreads = 2;
constexpr size_t kContentBytes = 3000;

volatile uint64_t* CountsIn(const char* path, size_t count) {
  const int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file < 0 || ftruncate(file, static_cast<off_t>(count * 8)) != 0) _exit(3);
  void* page = mmap(nullptr, count * 8, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (page == MAP_FAILED) _exit(3);
  return static_cast<volatile uint64_t*>(page);
}

void Work(volatile uint64_t* count, long calls, unsigned seed) {
  for (long call = 0; calls == 0 || call < calls; ++call) {
    const uint64_t id = RecordOneCall();
    if (call % 20 == 0) RecordContent(id, kContentBytes, seed + static_cast<unsigned>(call));
    *count = *count + 1;
  }
}

void WorkInThreads(volatile uint64_t* counts, long calls, int process) {
  std::vector<std::thread> threads;
  for (int i = process * kThreads; i < (process + 1) * kThreads; ++i) {
    threads.emplace_back(Work, counts + i, calls, static_cast<unsigned>(i) << 20);
  }
  for (std::thread& thread : threads) thread.join();
}

int Main(int argc, char** argv) {
  if (argc != 4 && argc != 5) return 64;
  const int processes = argc == 5 ? atoi(argv[4]) : 1;
  volatile uint64_t* counts = CountsIn(argv[1], static_cast<size_t>(processes) * kThreads);
  const long calls = atol(argv[2]);
  for (int process = 1; process < processes; ++process) {
    if (fork() != 0) continue;
    WorkInThreads(counts, calls, process);
    _exit(0);
  }
  WorkInThreads(counts, calls, 0);
  while (wait(nullptr) > 0) {
  }
  std::printf("%ld calls in each of %d threads\n", calls, kThreads);
  return atoi(argv[3]);
}

}  // namespace
}  // namespace acltape::test

int main(int argc, char** argv) { return acltape::test::Main(argc, argv); }
