// How much processor time the collector may use without taking it from the recorded program.
//
// Looked at ten times a second: what all processors were idle, plus half of what the collector
// itself used, is what it may use in the next tenth. With a processor to spare that is two thirds
// of it; beside a program that keeps every processor busy it is next to nothing. As little is used
// for what can wait: processors share their clock and their cache, so work on an idle one slows the
// program too.
#pragma once

#include <cstdint>
#include <optional>

namespace acltape::collector {

class SpareTime {
 public:
  explicit SpareTime(int64_t now_ns);

  // To be called often. What is left of the present tenth of a second, in ns.
  int64_t Left(int64_t now_ns, bool can_wait);

 private:
  // Idle time of all processors since the system's start; nothing where the system does not tell.
  static std::optional<int64_t> IdleNs();
  static int64_t UsedNs();  // processor time of this process

  int64_t begin_ns_;
  std::optional<int64_t> idle_ns_;  // at `begin_ns_`
  int64_t used_ns_;                 // at `begin_ns_`
  int64_t budget_ns_;               // of the present tenth
};

}  // namespace acltape::collector
