// Messages between HcclGroupStart and HcclGroupEnd. The library keeps them, and begins them
// together at the end of the outermost group. In the trace they are the HcclBatchSendRecv that this
// is, so that replays and comparisons know one form of a batch. Groups nest, and belong to the
// thread.
#pragma once

#include <cstdint>

#include "recorder/acl/interface.h"
#include "recorder/acl/real.h"

namespace acltape::acl_agent {

// True while a group of this thread is open.
bool IsGathering();
// Takes a message that the library has kept: a call of HcclSend or HcclRecv.
void Gather(const CallInfo& info, const uint64_t* values);

// The thread ends.
void ForgetGroup();

// The wrapped functions of groups.
extern const WrappedFunction kGroupFunctions[];

}  // namespace acltape::acl_agent
