// Messages of queues that the program takes into device memory (acltdtDequeueData): in the trace
// they are copies from the host, so that a replay has their bytes.
#pragma once

#include "recorder/acl/real.h"

namespace acltape::acl_agent {

// The wrapped functions of queues.
extern const WrappedFunction kQueueFunctions[];

}  // namespace acltape::acl_agent
