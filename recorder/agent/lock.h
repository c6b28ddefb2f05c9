// A lock for sections that are mostly a few dozen instructions: it spins, then gives the processor
// away, then sleeps, as its holder may be waiting for the device.
#pragma once

#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace acltape::agent {

class Mutex {
 public:
  void Acquire() {
    for (uint32_t round = 0; held_.exchange(1, std::memory_order_acquire) != 0; ++round) {
      while (held_.load(std::memory_order_relaxed) != 0) {
        if (++round % 64 != 0) continue;
        if (round < 4096) {
          sched_yield();
        } else {
          usleep(50);
        }
      }
    }
  }
  void Release() { held_.store(0, std::memory_order_release); }
  // Frees the lock in a forked child, where the parent's thread that held it does not exist.
  void Forget() { Release(); }

 private:
  std::atomic<uint32_t> held_{0};
};

class Lock {
 public:
  explicit Lock(Mutex& mutex) : mutex_(mutex) { mutex_.Acquire(); }
  ~Lock() { mutex_.Release(); }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace acltape::agent
