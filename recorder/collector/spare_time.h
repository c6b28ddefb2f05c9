// Tells the processor time that the collector may use without taking it from the recorded program.
//
// It is worked out ten times a second. In the next tenth of a second the collector may use the time
// for which all processors together were idle, plus half of the time that it used itself. With a
// processor to spare that comes to two thirds of the processor; beside a program that keeps every
// processor busy it is next to nothing. Work that can wait is kept this low because processors
// share their clock and their cache: work on an idle one slows the program too.
#pragma once

#include <cstdint>
#include <optional>

namespace acltape::collector {

class SpareTime {
 public:
  explicit SpareTime(int64_t now_ns);

  // Gives the time in ns that the collector may still use in the present tenth of a second. It has
  // to be called often.
  int64_t Left(int64_t now_ns, bool can_wait);

 private:
  // Idle time of all processors since the system's start; nothing where the system does not tell.
  static std::optional<int64_t> IdleNs();
  static int64_t UsedNs();  // processor time of this process

  int64_t begin_ns_;
  std::optional<int64_t> idle_ns_;  // at `begin_ns_`
  int64_t used_ns_;                 // at `begin_ns_`
  int64_t budget_ns_;               // budget of the present tenth
};

}  // namespace acltape::collector
