// The arena from the collector's side (layout in recorder/wire/arena.h): creates it, calibrates its
// clock, and maps rings.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

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
  // A path by which any process of this user opens the arena while the collector lives.
  std::string path() const;

  // Nanoseconds of CLOCK_MONOTONIC at a tick. Within 4e18 even for a tick that makes no sense, so
  // that differences of times never overflow.
  int64_t ToNs(uint64_t tick) const {
    const double since =
        static_cast<double>(static_cast<int64_t>(tick - base_tick_)) * ns_per_tick_;
    return base_ns_ + static_cast<int64_t>(std::clamp(since, -4e18, 4e18 - 1e16));
  }

  // Gives the memory of a drained ring back to the system.
  void ReleasePages(uint32_t slot);

 private:
  void Calibrate();

  int fd_ = -1;
  std::byte* memory_ = nullptr;  // header and slot pages
  size_t mapped_bytes_ = 0;
  wire::ArenaHeader* header_ = nullptr;
  int64_t base_ns_ = 0;
  uint64_t base_tick_ = 0;
  double ns_per_tick_ = 1;
};

}  // namespace acltape::collector
