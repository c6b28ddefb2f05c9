// The communicators of HCCL that the program uses: an id in place of each handle, and what the
// library says of it. Ids come from the counter of handles. A program that asks for the name of a
// communicator may hand it to operators that communicate, so that one is used too.
#pragma once

#include <cstdint>

#include "recorder/acl/real.h"

namespace acltape::acl_agent {

struct Thread;

// The id of a communicator. The first call that takes it tells the collector its name, its number
// of ranks and this process's rank. 0 for NULL, and where there is no memory to remember it.
uint64_t CommunicatorId(Thread& thread, uint64_t communicator);

// The number of ranks of a communicator; 1 when its library does not say.
uint32_t RanksOf(uint64_t communicator);
// This process's rank in a communicator; 0 when its library does not say.
uint32_t RankIn(uint64_t communicator);

void ForgetCommunicatorLocks();

// The wrapped functions of communicators.
extern const WrappedFunction kCommunicatorFunctions[];

}  // namespace acltape::acl_agent
