#include "storage/process_identity.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

namespace acltape::storage {

namespace {

// The fields of /proc/<pid>/stat from the third on, by their numbers in proc(5).
class Stat {
 public:
  explicit Stat(int64_t pid) {
    char path[48];
    std::snprintf(path, sizeof(path), "/proc/%lld/stat", static_cast<long long>(pid));
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    const ssize_t bytes = read(file, text_, sizeof(text_) - 1);
    close(file);
    if (bytes <= 0) return;
    text_[bytes] = '\0';
    // The command name may hold anything; the fields go on after its last parenthesis.
    const char* name_end = std::strrchr(text_, ')');
    if (name_end != nullptr && name_end[1] != '\0') third_ = name_end + 2;
  }
  bool there() const { return third_ != nullptr; }
  char state() const { return *third_; }
  uint64_t Number(int field) const {
    const char* field_text = third_;
    for (int i = 3; field_text != nullptr && i < field; ++i) {
      field_text = std::strchr(field_text, ' ');
      if (field_text != nullptr) ++field_text;
    }
    return field_text != nullptr ? std::strtoull(field_text, nullptr, 10) : 0;
  }

 private:
  char text_[1024];
  const char* third_ = nullptr;
};

}  // namespace

uint64_t ProcessStartTime(int64_t pid) {
  constexpr int kThreads = 20;
  constexpr int kStartTime = 22;
  const Stat stat(pid);
  if (!stat.there()) return 0;
  // The state is that of the first thread.
  const bool ended = stat.state() == 'Z' || stat.state() == 'X';
  return ended && stat.Number(kThreads) <= 1 ? 0 : stat.Number(kStartTime);
}

bool ProcessIsDying(int64_t pid) {
  constexpr int kFlags = 9;
  constexpr int kPending = 31;
  constexpr uint64_t kExiting = 4;  // PF_EXITING
  const Stat stat(pid);
  if (!stat.there()) return false;
  return (stat.Number(kFlags) & kExiting) != 0 ||
         (stat.Number(kPending) & (uint64_t{1} << (SIGKILL - 1))) != 0;
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
