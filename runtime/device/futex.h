// Sleeping on a 32 bit word, with time-out: what std::atomic::wait lacks.
#pragma once

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>

namespace acltape::device {

inline int64_t NowNs() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1000000000 + now.tv_nsec;
}

inline void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Sleeps while `word` equals `expected`, at most `timeout_ns`; may return early.
inline void FutexWait(std::atomic<uint32_t>& word, uint32_t expected, int64_t timeout_ns) {
  timespec limit{timeout_ns / 1000000000, timeout_ns % 1000000000};
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT_PRIVATE, expected, &limit,
          nullptr, 0);
}

inline void FutexWakeAll(std::atomic<uint32_t>& word) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE_PRIVATE, INT_MAX, nullptr,
          nullptr, 0);
}

// A thread spins for so long before it sleeps. Waking it would cost about as much.
inline constexpr int64_t kSpinNs = 20000;

// Spins until `done()` or kSpinNs have passed; true when done.
template <typename Done>
bool SpinUntil(Done done) {
  if (done()) return true;
  int64_t start = NowNs();
  do {
    for (int i = 0; i < 64; ++i) {
      Pause();
      if (done()) return true;
    }
  } while (NowNs() - start < kSpinNs);
  return done();
}

}  // namespace acltape::device
