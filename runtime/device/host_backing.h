// Device memory and pinned memory are memory of the host, which comes when it is first used. So a
// host that has less than the device says it has could give addresses for which no memory is left
// at the first use; then the kernel ends some process. Instead, each allocation claims its bytes
// here, and one that the host could not back fails (MEM-18).
//
// What the host has is looked up for every 64 MiB that a process claims more (host_memory.h). From
// it goes what processes of this user have claimed and not used: each has a row in a table in
// shared memory, /dev/shm/acltape-host-memory-USER, which the last of them removes. Without such a
// folder a process counts for itself alone.
//
// What a process has used is what its resident memory grew by since its first claim, so memory that
// it takes for itself in the meantime counts as used too. For such mistakes a reserve is kept.
//
// With the setting `host_memory` nothing is looked up: the processes that have the same number may
// claim so many bytes together.
#pragma once

#include <cstddef>
#include <string>

namespace acltape::device {

// False when the host cannot back `bytes` bytes more; then `why`, if given, gets a part of a
// sentence that says what it has. `call` is the function that the program called. Any thread may
// call it.
bool ClaimHostMemory(size_t bytes, const char* call, std::string* why);
void ReturnHostMemory(size_t bytes);

}  // namespace acltape::device
