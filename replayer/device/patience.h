// How long the host waits for work that may never end.
#pragma once

#include <functional>
#include <optional>

#include "acl/loader/library.h"
#include "replayer/device/device_work.h"

namespace acltape::replayer {

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
// A probe issues a few calls with empty host functions, so that less time is enough.
inline constexpr Patience kProbeOnSoftDevice = {250, 4};
inline constexpr Patience kProbeOnOtherDevices = {1000, 20};

inline const Patience& ProbePatience(const acl::Library& library) {
  return library.IsSoftDevice() ? kProbeOnSoftDevice : kProbeOnOtherDevices;
}

// Waits until `wait`, which waits for at most `limit_ms`, has a result. Nothing if it timed out and
// the process was idle for so many pieces, one after the other.
std::optional<CallResult> WaitInPieces(const Patience& patience,
                                       const std::function<CallResult(int limit_ms)>& wait);

}  // namespace acltape::replayer
