// Processes as the system knows them, and the reading of their memory.
#pragma once

#include <cstdint>

namespace acltape::hccl {

// When the process began, in clock ticks after the machine's start. 0: it has ended, or waits only
// for its parent to ask how it ended.
uint64_t StartOf(uint32_t process);

// The number of the namespace in which this process's number means something; 0: not known.
uint64_t PidNamespace();

// Lets other processes of this user read this one's memory, where Yama's ptrace_scope 1 would keep
// them from it. Libraries of MPI do the same.
void AllowReaders();

// Copies bytes of a process, this one or another one, without its help. Returns 0, or an errno:
// ESRCH when the process has ended, EFAULT when it has no such memory, EPERM when it is not
// allowed.
int ReadMemory(uint32_t process, uint64_t from, void* to, uint64_t bytes);

}  // namespace acltape::hccl
