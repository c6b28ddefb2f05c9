// Streams that could work side by side and do not, because one waits for the other earlier than
// anything on it needs.
//
// A wait for an event is too early if calls between the wait and the first call that must stay in
// order with the awaited work touch none of its bytes. What happens on other streams that wait for
// the waiting one counts too. Where the trace does not tell what a call uses, nothing is said.
#pragma once

#include <cstdint>
#include <vector>

#include "analyzer/calls/work.h"

namespace acltape::analyzer::waits {

struct EarlyWait {
  uint32_t wait = 0;       // the call in which the stream waits
  uint32_t record = 0;     // the call that recorded the event
  int64_t made_by = -1;    // the call that created the event; -1: not in the trace
  uint32_t awaited = 0;    // the last work that the stream waits for
  int64_t needed_by = -1;  // the first call that needs it; -1: none before the stream waits again
  int64_t between = 0;     // pieces of work in between that could run beside it
  uint32_t first_between = 0;
  // The device's time that could be saved at most: the shorter of both sides. 0: not known.
  int64_t device_ns = 0;
};

// In order of the waits.
std::vector<EarlyWait> FindEarlyWaits(const Work& work);

}  // namespace acltape::analyzer::waits
