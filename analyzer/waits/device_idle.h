// Why a device idled, by what the program's threads did when its work ran out. A trace has the
// times for it with `record --device-times`.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "analyzer/calls/work.h"
#include "analyzer/waits/host_waits.h"

namespace acltape::analyzer::waits {

enum class IdleCause : uint8_t {
  kWait,      // the host waited, so that nothing was queued
  kCopy,      // a copy blocked the host
  kFirstUse,  // the operator that came next was used for the first time
  kCalls,     // the host was inside of calls
  kProgram,   // Python and the framework between calls, or the program's own code
  kDevice,    // the work was launched and waited on the device
};
std::string_view IdleCauseName(IdleCause cause);

struct IdleTime {
  int64_t ns = 0;
  IdleCause cause = IdleCause::kDevice;
  int64_t wait = -1;      // index of the wait or the copy; -1: none
  int64_t ended_by = -1;  // index of the call whose work ended it; -1: not of this work
};

// Each time in which a device had nothing to do between its first work and its last.
std::vector<IdleTime> FindIdleTimes(const Work& work, const HostWaits& waits);

}  // namespace acltape::analyzer::waits
