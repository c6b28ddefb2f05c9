// How long the host waits for work that may never end.
#pragma once

#include <functional>
#include <optional>

#include "replayer/device/device_work.h"

namespace acltape::replayer::acl_level {

// Note [Work that stops]
// ----------------------
// An external event is reset by the graph that waited for it. If the host does not wait between two
// executions, which a changed trace can claim, the reset can take the record that was meant for the
// next execution, and that one waits for ever. The order of the calls does not tell it, because it
// depends on times. So the host waits in pieces. The soft device computes in this process: its work
// has stopped when the process does next to nothing for several pieces, and work that is slow has
// not. Of another device nothing is known but the time.
struct Patience {
  int piece_ms = 3000;
  int idle_pieces = 4;
};
inline constexpr Patience kForSoftDevice = {};
inline constexpr Patience kForOtherDevices = {3000, 20};

// Waits until `wait`, which waits for at most `limit_ms`, has a result. Nothing if it timed out and
// the process was idle for so many pieces, one after the other.
std::optional<CallResult> WaitInPieces(const Patience& patience,
                                       const std::function<CallResult(int limit_ms)>& wait);

}  // namespace acltape::replayer::acl_level
