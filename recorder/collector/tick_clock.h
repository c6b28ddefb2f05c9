// Turns ticks of recorded threads into times.
#pragma once

#include <algorithm>
#include <cstdint>

namespace acltape::collector {

// A copy of the clock in the arena's header, which the program could overwrite.
struct TickClock {
  int64_t base_ns = 0;
  uint64_t base_tick = 0;
  double ns_per_tick = 1;

  // Nanoseconds of CLOCK_MONOTONIC at a tick. Within 4e18 even for a tick that makes no sense, so
  // that differences of times never overflow.
  int64_t ToNs(uint64_t tick) const {
    const double since = static_cast<double>(static_cast<int64_t>(tick - base_tick)) * ns_per_tick;
    return base_ns + static_cast<int64_t>(std::clamp(since, -4e18, 4e18 - 1e16));
  }
  // Nanoseconds that so many ticks take, at most 4e18.
  int64_t NsOf(uint64_t ticks) const {
    return static_cast<int64_t>(std::min(static_cast<double>(ticks) * ns_per_tick, 4e18));
  }
};

}  // namespace acltape::collector
