// The numbers that a process has, and who sees which of them.
//
// Note [Numbers of processes]. A process has one number in each PID namespace that it is visible
// in, and getpid() tells that of its own. The collector looks processes up in /proc, so slots have
// numbers of the collector's /proc. A process whose PID namespace is the collector's has the number
// that getpid() tells. Any other process that still sees the collector's /proc reads its number
// there; else it asks (arena_request.h). Threads write the number that they have in their own
// namespace and say so in the slot; the collector finds the one that it knows them by.
#pragma once

#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>

namespace acltape::wire {

// The PID namespace of this process; 0 when there is no /proc that tells it. No two namespaces
// that exist at a time have the same number.
inline uint64_t PidNamespace() {
  struct stat status;
  return stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

// Tells one mount of /proc from that of another PID namespace; 0 when there is none.
inline uint64_t ProcDevice() {
  struct stat status;
  return stat("/proc/self", &status) == 0 ? status.st_dev : 0;
}

// The number of this process in the /proc that it sees, 0 when it sees none that has it.
inline uint32_t NumberInProc() {
  char text[16];
  const ssize_t bytes = readlink("/proc/self", text, sizeof(text));
  uint32_t number = 0;
  for (ssize_t i = 0; i < bytes; ++i) {
    if (text[i] < '0' || text[i] > '9') return 0;
    number = number * 10 + static_cast<uint32_t>(text[i] - '0');
  }
  return number;
}

}  // namespace acltape::wire
