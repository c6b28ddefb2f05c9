#include "runtime/device/host_backing.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <utility>

#include "runtime/device/device_heap.h"
#include "runtime/device/findings.h"
#include "runtime/device/host_memory.h"
#include "runtime/device/profile.h"

namespace acltape::device {
namespace {

// The host is looked at once for so many bytes.
constexpr uint64_t kStep = uint64_t{64} << 20;

// "57.4 MiB"
std::string Amount(uint64_t bytes) {
  const bool small = bytes < uint64_t{1} << 30;
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f %s",
                static_cast<double>(bytes) / static_cast<double>(1 << (small ? 20 : 30)),
                small ? "MiB" : "GiB");
  return text;
}

// The claims of a process. All of a row is read and written while the table is locked.
struct Row {
  uint64_t process;  // 0: nobody has the row
  uint64_t started;  // HostProcess
  uint64_t before;   // bytes that were resident at the first claim
  uint64_t limit;    // the setting
  uint64_t granted;  // bytes

  uint64_t Unused(const HostProcess& now) const {
    const uint64_t used = now.resident - std::min(now.resident, before);
    return granted - std::min(granted, used);
  }
};

// The rows of all processes of this user, locked while the object lives. Without rows where there
// is no such memory.
class Table {
 public:
  Table() {
    constexpr int kAttempts = 16;
    for (int attempt = 0; attempt < kAttempts && rows_ == nullptr; ++attempt) {
      Close();
      file_ = open(Path().c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
      struct stat status {};
      if (file_ < 0 || !Lock() || fstat(file_, &status) != 0) return;
      if (status.st_nlink == 0) continue;  // the last process has just removed it
      if (status.st_uid != geteuid() || posix_fallocate(file_, 0, kBytes) != 0) return;
      void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
      if (memory != MAP_FAILED) rows_ = static_cast<Row*>(memory);
    }
  }
  ~Table() { Close(); }
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  Row* begin() const { return rows_; }
  Row* end() const { return rows_ != nullptr ? rows_ + kRows : nullptr; }
  static void Remove() { unlink(Path().c_str()); }

 private:
  static constexpr size_t kRows = 1024;
  static constexpr size_t kBytes = sizeof(Row) * kRows;

  static std::string Path() { return "/dev/shm/acltape-host-memory-" + std::to_string(geteuid()); }

  // A process that is stopped while it has the lock keeps others for a second, not for ever.
  bool Lock() const {
    constexpr int kTries = 1000;
    for (int i = 0; i < kTries; ++i) {
      if (flock(file_, LOCK_EX | LOCK_NB) == 0) return true;
      usleep(1000);
    }
    return false;
  }

  void Close() {
    if (rows_ != nullptr) munmap(rows_, kBytes);
    if (file_ >= 0) close(file_);  // this unlocks it
  }

  int file_ = -1;
  Row* rows_ = nullptr;
};

// Sums up what other processes have claimed, and has a row for this one; null when none is free.
struct Others {
  uint64_t unused = 0;
  uint64_t of_same_limit = 0;
  Row* row = nullptr;

  Others(const Table& table, const Row& own) {
    Row* free = nullptr;
    for (Row& other : table) {
      if (other.process == own.process && other.started == own.started) {
        row = &other;
        continue;
      }
      const auto process = other.process != 0 ? FindHostProcess(other.process) : std::nullopt;
      if (!process || process->started != other.started) {
        other.process = 0;
        if (free == nullptr) free = &other;
        continue;
      }
      ++living;
      unused += other.Unused(*process);
      if (other.limit == own.limit) of_same_limit += other.granted;
    }
    if (row == nullptr) row = free;
  }

  size_t living = 0;
};

// The claims of this process.
class Claims {
 public:
  bool Claim(uint64_t bytes, const char* call, std::string* why) {
    std::lock_guard lock(mutex_);
    BeginProcess();
    const uint64_t wanted = claimed_ + bytes;
    std::string reason;
    // The last part of a step may be more than the host has.
    if (wanted > own_.granted && !Grant(RoundUp(wanted, kStep), &reason) &&
        !Grant(wanted, &reason)) {
      ReportFinding(kNoHostMemory, call, "no room for " + Amount(bytes) + "; " + reason);
      if (why != nullptr) *why = std::move(reason);
      return false;
    }
    claimed_ = wanted;
    return true;
  }

  void Return(uint64_t bytes) {
    std::lock_guard lock(mutex_);
    claimed_ -= std::min(claimed_, bytes);
    const uint64_t kept = RoundUp(claimed_, kStep);
    if (ended_ || own_.process != OwnProcess() || own_.granted <= kept + kStep) return;
    own_.granted = kept;
    const Table table;
    if (Row* row = Others(table, own_).row) *row = own_;
  }

  void End() {
    std::lock_guard lock(mutex_);
    ended_ = true;
    if (own_.process != OwnProcess()) return;
    const Table table;
    const Others others(table, own_);
    if (others.row != nullptr) others.row->process = 0;
    if (others.row != nullptr && others.living == 0) Table::Remove();
  }

 private:
  static uint64_t OwnProcess() { return static_cast<uint64_t>(getpid()); }

  // A child has none of the claims of its parent.
  void BeginProcess();

  // Grants this process `granted` bytes in all, if the host has them.
  bool Grant(uint64_t granted, std::string* why) {
    const Table table;
    const Others others(table, own_);
    uint64_t most = own_.limit;
    uint64_t taken = others.of_same_limit;
    if (most == 0) {
      const auto available = AvailableHostMemory();
      const auto self = FindHostProcess(own_.process);
      if (!available || !self) return Keep(granted, others);  // nothing is known of this host
      most = own_.granted + *available;
      taken = others.unused + own_.Unused(*self);
    }
    const uint64_t room = most - std::min(most, taken);
    if (granted <= room) return Keep(granted, others);
    *why = "the host has " + Amount(room - std::min(room, claimed_)) + " more for it";
    return false;
  }

  bool Keep(uint64_t granted, const Others& others) {
    own_.granted = granted;
    if (others.row != nullptr && !ended_) *others.row = own_;
    return true;
  }

  std::mutex mutex_;
  Row own_{};
  uint64_t claimed_ = 0;  // at most what is granted
  bool ended_ = false;
};

Claims& GetClaims() {
  static Claims& claims = *new Claims;  // frees may come late (INIT-09)
  return claims;
}

void Claims::BeginProcess() {
  if (own_.process == OwnProcess()) return;
  const HostProcess self = FindHostProcess(OwnProcess()).value_or(HostProcess{});
  own_ = {OwnProcess(), self.started, self.resident, GetProfile().host_memory, 0};
  claimed_ = 0;
  [[maybe_unused]] static const int registered = std::atexit([] { GetClaims().End(); });
}

}  // namespace

bool ClaimHostMemory(size_t bytes, const char* call, std::string* why) {
  return GetClaims().Claim(bytes, call, why);
}

void ReturnHostMemory(size_t bytes) { GetClaims().Return(bytes); }

}  // namespace acltape::device
