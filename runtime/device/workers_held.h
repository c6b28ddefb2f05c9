// Holds the workers of all streams between two tasks, so that memory can be moved while nothing
// writes to it. A task that waits for something stays where it is: it writes nothing. A task that
// does not end within ten seconds is not waited for any longer.
#pragma once

#include <atomic>
#include <cstdint>

namespace acltape::device {

class WorkersHeld {
 public:
  WorkersHeld();
  ~WorkersHeld();
  WorkersHeld(const WorkersHeld&) = delete;
  WorkersHeld& operator=(const WorkersHeld&) = delete;

  static bool Now() { return count_.load(std::memory_order_seq_cst) != 0; }

 private:
  static std::atomic<uint32_t> count_;
};

}  // namespace acltape::device
