// Tells processes apart. A pid alone is reused; a pid with its start time is not (within one boot).
#pragma once

#include <cstdint>
#include <string>

namespace acltape::storage {

// Start time of a process in clock ticks since boot (field 22 of /proc/<pid>/stat); 0 when there is
// no such process or it is a zombie, which runs no more code. A process whose first thread has
// ended before others is none.
uint64_t ProcessStartTime(int64_t pid);

// True when the process that had this pid and start time still runs.
bool ProcessRuns(int64_t pid, uint64_t start_time);

// True when the process has been killed and has not come to its end yet. For a moment on the way
// there it looks as if it lived.
bool ProcessIsDying(int64_t pid);

// Text that differs between machines and between boots of one machine.
std::string BootIdentity();

}  // namespace acltape::storage
