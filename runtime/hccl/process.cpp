#include "runtime/hccl/process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace acltape::hccl {

uint64_t StartOf(uint32_t process) {
  char text[1024];
  std::snprintf(text, sizeof text, "/proc/%u/stat", process);
  const int file = open(text, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const ssize_t bytes = read(file, text, sizeof text - 1);
  close(file);
  if (bytes <= 0) return 0;
  text[bytes] = '\0';
  // The name in brackets may have spaces and brackets. The state follows it as the third word of
  // the line; the time at which the process began is the 22nd.
  const char* rest = std::strrchr(text, ')');
  if (rest == nullptr || rest[1] != ' ' || rest[2] == 'Z' || rest[2] == 'X') return 0;
  for (int word = 2; word < 22 && rest != nullptr; ++word) rest = std::strchr(rest + 1, ' ');
  return rest == nullptr ? 0 : std::strtoull(rest, nullptr, 10);
}

uint64_t PidNamespace() {
  static const uint64_t number = [] {
    struct stat status {};
    return stat("/proc/self/ns/pid", &status) == 0 ? static_cast<uint64_t>(status.st_ino) : 0;
  }();
  return number;
}

void AllowReaders() { prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY); }

int ReadMemory(uint32_t process, uint64_t from, void* to, uint64_t bytes) {
  auto* next = static_cast<char*>(to);
  while (bytes != 0) {
    const iovec local = {next, bytes};
    const iovec remote = {reinterpret_cast<void*>(from), bytes};
    const ssize_t copied = process_vm_readv(static_cast<pid_t>(process), &local, 1, &remote, 1, 0);
    if (copied < 0) return errno;
    if (copied == 0) return EFAULT;
    next += copied;
    from += static_cast<uint64_t>(copied);
    bytes -= static_cast<uint64_t>(copied);
  }
  return 0;
}

}  // namespace acltape::hccl
