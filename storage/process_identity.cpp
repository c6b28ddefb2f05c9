#include "storage/process_identity.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

namespace acltape::storage {

uint64_t ProcessStartTime(int64_t pid) {
  char path[48];
  std::snprintf(path, sizeof(path), "/proc/%lld/stat", static_cast<long long>(pid));
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  char text[1024];
  const ssize_t bytes = read(file, text, sizeof(text) - 1);
  close(file);
  if (bytes <= 0) return 0;
  text[bytes] = '\0';
  // The command name may hold anything; the fields go on after its last parenthesis.
  const char* at = std::strrchr(text, ')');
  if (at == nullptr || at[1] == '\0') return 0;
  at += 2;
  if (*at == 'Z' || *at == 'X') return 0;
  for (int field = 3; field < 22; ++field) {
    at = std::strchr(at, ' ');
    if (at == nullptr) return 0;
    ++at;
  }
  return std::strtoull(at, nullptr, 10);
}

bool ProcessRuns(int64_t pid, uint64_t start_time) {
  return start_time != 0 && ProcessStartTime(pid) == start_time;
}

std::string BootIdentity() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string text;
  std::getline(file, text);
  return text;
}

}  // namespace acltape::storage
