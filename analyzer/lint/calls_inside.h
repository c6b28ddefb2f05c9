// An operator of PyTorch that nobody knows is told by the calls of the ACL interface that were
// recorded in it.
#pragma once

#include <cstdint>

#include "storage/reader.h"

namespace acltape::analyzer::lint {

enum class CallsInside : uint8_t {
  kNotRecorded,  // no call of the interface is known to be the leaf's
  kNoWait,       // the host waits in none of them
  kWait          // the host waits in one of them
};

// `leaf` is the id of a leaf of PyTorch. Calls of the adapter's queue belong to the leaf that asked
// for them.
CallsInside FindCallsInside(const storage::Reader& trace, int64_t leaf);

}  // namespace acltape::analyzer::lint
