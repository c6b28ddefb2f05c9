// Memory that the host can neither read nor write, as a device's memory is: what a first phase must
// not touch.
#pragma once

#include "tests/opapi/operator_call.h"

namespace acltape::opapi {

struct HostAccess {
  aclnnStatus status = 0;  // result of the first phase
  int accesses = 0;        // accesses of unreadable memory; each one reads zeros
};

// Runs the first phase of a call whose tensors lie in unreadable memory: shapes, strides and
// offsets are those of `args`, and what shares a storage there shares one here.
HostAccess PrepareOverUnreadableMemory(const char* name, const Args& args);

}  // namespace acltape::opapi
