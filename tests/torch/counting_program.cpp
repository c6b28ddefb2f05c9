// A C++ libtorch program that counts its finished operators in a file that outlives it.
//
//   counting_program FILE [OPERATORS]
//
// Two threads add small tensors; after each operator the thread's 64-bit counter in FILE grows. So
// when the program is killed at any moment, FILE holds the number of operators that it had
// completed.
#include <ATen/ATen.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const long operators = argc > 2 ? std::atol(argv[2]) : 1L << 60;
  const int file = open(argv[1], O_RDWR | O_CREAT, 0600);
  if (file < 0 || ftruncate(file, 2 * 4096) != 0) return 2;
  void* page = mmap(nullptr, 2 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (page == MAP_FAILED) return 2;
  const auto work = [&](int index) {
    auto* count = reinterpret_cast<std::atomic<uint64_t>*>(static_cast<char*>(page) + 4096 * index);
    at::Tensor x = at::ones({4});
    count->fetch_add(1, std::memory_order_relaxed);
    for (long i = 1; i < operators; ++i) {
      const at::Tensor y = x.add(x);
      count->fetch_add(1, std::memory_order_relaxed);
    }
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  std::printf("done\n");
  return 0;
}
