// The clock of the host, and the part of a measured time that the host spends in waits.
#pragma once

#include <cstdint>

namespace acltape::replayer {

// The time that a pass over leaves spends in waits for the device (host reads).
struct WaitClock {
  int64_t waited_ns = 0;
};

int64_t NowNs();  // CLOCK_MONOTONIC

}  // namespace acltape::replayer
