// This tells what the host has for device memory. It is read from /proc and from the control groups
// of this process (versions 1 and 2).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace acltape::device {

// Bytes that processes can use more before the kernel ends one of them: free memory, caches that
// can go, and swap, less what the control groups leave of it and a reserve for the system. None
// when /proc cannot be read. `root` stands in front of the paths.
std::optional<uint64_t> AvailableHostMemory(const std::string& root = "");

// A process that lives.
struct HostProcess {
  uint64_t started = 0;   // clock ticks after the boot: tells it from a later one with its number
  uint64_t resident = 0;  // bytes of anonymous and shared memory, without mapped files
};

// None when there is no such process, or it has ended and nobody has waited for it.
std::optional<HostProcess> FindHostProcess(uint64_t process);

}  // namespace acltape::device
