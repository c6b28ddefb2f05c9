// Calls after the last aclFinalize (INIT-01).
//
// A process that never called aclInit is served: drop-ins have to be forgiving there, and clients
// are used to it. After aclFinalize the same calls would seem to work and fail on a device, so they
// are refused. What gives things back stays: destructors run late (INIT-09).
#pragma once

#include <atomic>

#include "acl/acl.h"

namespace acltape::device {

extern constinit std::atomic<bool> finalized;

inline bool Finalized() { return finalized.load(std::memory_order_relaxed); }

// 100001 with a message, or success for the calls that stay.
aclError RefuseAfterFinalize(const char* call);

}  // namespace acltape::device
