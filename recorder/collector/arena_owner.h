// The arena from the collector's side (layout in recorder/wire/arena.h): creates it, calibrates its
// clock, and maps rings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "recorder/collector/tick_clock.h"
#include "recorder/wire/arena.h"
#include "storage/error.h"

namespace acltape::collector {

struct ArenaOptions {
  uint32_t slots = 64;
  uint64_t ring_bytes = uint64_t{4} << 20;
  uint32_t levels = 0;
  wire::PayloadPolicy payload = wire::PayloadPolicy::kNone;
  bool composites = true;
  bool modules = false;
  wire::StackPolicy stacks = wire::StackPolicy::kNone;
  bool open = true;                                    // recording begins with the program
  std::optional<std::pair<uint64_t, uint64_t>> steps;  // the first and the last that are recorded
  bool limit_size = false;
  std::string steps_from;  // as in RecordOptions; shorter than wire::kStepNameBytes
  bool device_times = false;
  uint64_t patience_ns = wire::kPatienceNs;
};

class ArenaOwner {
 public:
  // Takes some 20 ms, to measure the tick counter. Error kDevice without shared memory.
  explicit ArenaOwner(const ArenaOptions& options);
  ~ArenaOwner();
  ArenaOwner(const ArenaOwner&) = delete;
  ArenaOwner& operator=(const ArenaOwner&) = delete;

  wire::ArenaHeader& header() { return *header_; }
  wire::Slot& slot(uint32_t index);
  int fd() const { return fd_; }
  // A path by which any process of this user that sees the same /proc opens the arena while the
  // collector lives.
  std::string path() const;

  const TickClock& clock() const { return clock_; }

  // Gives the memory of a drained ring back to the system, without its first `from` bytes.
  void ReleasePages(uint32_t slot, uint64_t from);

 private:
  void Calibrate();

  int fd_ = -1;
  std::byte* memory_ = nullptr;  // header and slot pages
  size_t mapped_bytes_ = 0;
  wire::ArenaHeader* header_ = nullptr;
  TickClock clock_;
};

}  // namespace acltape::collector
