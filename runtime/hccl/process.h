// Facts about processes that the system knows.
#pragma once

#include <cstdint>

namespace acltape::hccl {

// When the process began, in clock ticks after the machine's start. 0: it has ended, or waits only
// for its parent to ask how it ended.
uint64_t StartOf(uint32_t process);

// The number of the namespace in which this process's number means something; 0: not known.
uint64_t PidNamespace();

}  // namespace acltape::hccl
