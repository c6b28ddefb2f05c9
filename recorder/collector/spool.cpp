#include "recorder/collector/spool.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/falloc.h>
#include <sys/random.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "storage/error.h"

namespace acltape::collector {
namespace {

constexpr uint64_t kLeastFreeBytes = uint64_t{256} << 20;
constexpr char kDiskIsScarce[] = "its disk has less than 256 MiB left";

std::string WhyNot(const char* what) { return fmt::format("{} ({})", what, std::strerror(errno)); }

}  // namespace

std::string SpoolIdentity(const SpoolHeader& header) {
  return fmt::format("{:016x}{:016x}", header.identity[0], header.identity[1]);
}

std::vector<std::byte> OpeningOf(const LogOrigin& origin) {
  SpoolOpen fixed;
  fixed.pid = origin.pid;
  fixed.tid = origin.tid;
  fixed.slot = origin.slot;
  fixed.generation = origin.generation;
  fixed.has_rank = origin.rank ? 1 : 0;
  fixed.rank = origin.rank.value_or(0);
  const std::string& name = origin.process_name;
  std::vector<std::byte> body(sizeof(fixed) + name.size());
  std::memcpy(body.data(), &fixed, sizeof(fixed));
  std::memcpy(body.data() + sizeof(fixed), name.data(), name.size());
  return body;
}

SpoolClosed CountsOf(const wire::ArenaHeader& header, bool outlived) {
  SpoolClosed counts;
  counts.threads_without_slot = header.threads_without_slot.load();
  counts.threads_without_ring = header.threads_without_ring.load();
  counts.processes_without_number = header.processes_without_number.load();
  counts.processes_not_attached = header.processes_not_attached.load();
  counts.processes_unanswered = header.processes_unanswered.load();
  for (size_t i = 0; i < wire::kLeftOutKinds; ++i) counts.left_out[i] = header.left_out[i].load();
  counts.torch_processes = header.torch_processes.load();
  counts.acl_processes = header.acl_processes.load();
  counts.slots = header.slot_count;
  counts.outlived = outlived ? 1 : 0;
  return counts;
}

void PutCounts(const SpoolClosed& counts, wire::ArenaHeader& header) {
  header.threads_without_slot.store(counts.threads_without_slot);
  header.threads_without_ring.store(counts.threads_without_ring);
  header.processes_without_number.store(counts.processes_without_number);
  header.processes_not_attached.store(counts.processes_not_attached);
  header.processes_unanswered.store(counts.processes_unanswered);
  for (size_t i = 0; i < wire::kLeftOutKinds; ++i) header.left_out[i].store(counts.left_out[i]);
  header.torch_processes.store(counts.torch_processes);
  header.acl_processes.store(counts.acl_processes);
  header.slot_count = counts.slots;
}

uint64_t WriteEntry(int file, uint64_t end, SpoolEntry entry, std::span<const std::byte> body) {
  constexpr std::byte kZeros[8] = {};
  const size_t padding = (8 - body.size() % 8) % 8;
  const size_t bytes = sizeof(entry) + body.size() + padding;
  entry.bytes = body.size();
  const iovec parts[] = {{&entry, sizeof(entry)},
                         {const_cast<std::byte*>(body.data()), body.size()},
                         {const_cast<std::byte*>(kZeros), padding}};
  ssize_t written = 0;
  do {
    written = pwritev(file, parts, 3, static_cast<off_t>(end));
  } while (written < 0 && errno == EINTR);
  if (written >= 0 && written != static_cast<ssize_t>(bytes)) errno = ENOSPC;
  return written == static_cast<ssize_t>(bytes) ? bytes : 0;
}

Spool::Spool(const std::string& path, const TickClock& clock, const std::string& steps_from,
             uint64_t most_bytes)
    : path_(path + storage::kSpoolSuffix), most_bytes_(most_bytes) {
  header_.base_ns = clock.base_ns;
  header_.base_tick = clock.base_tick;
  header_.ns_per_tick = clock.ns_per_tick;
  steps_from.copy(header_.steps_from, sizeof(header_.steps_from) - 1);
  static_cast<void>(!getrandom(header_.identity, sizeof(header_.identity), 0));
  unlink(path_.c_str());
  if (most_bytes < sizeof(header_)) {
    why_not_ = "the recording keeps none";
    return;
  }
  file_ = open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file_ < 0) {
    why_not_ = WhyNot("it could not be made");
    return;
  }
  const bool scarce = IsDiskScarce();
  if (scarce || pwrite(file_, &header_, sizeof(header_), 0) != sizeof(header_)) {
    why_not_ = scarce ? kDiskIsScarce : WhyNot("it could not be written");
    Remove();
    return;
  }
  end_ = sizeof(header_);
  taking_ = true;
}

bool Spool::IsDiskScarce() {
  constexpr uint64_t kBetweenLooks = uint64_t{4} << 20;
  next_look_ = end_ + kBetweenLooks;
  struct statvfs disk;
  if (fstatvfs(file_, &disk) != 0) return false;
  const uint64_t left = disk.f_bavail * disk.f_frsize;
  room_ = left - std::min(left, kLeastFreeBytes);
  return left < kLeastFreeBytes;
}

Spool::~Spool() { Remove(); }

void Spool::Remove() {
  taking_ = false;
  if (file_ < 0) return;
  unlink(path_.c_str());
  close(file_);
  file_ = -1;
}

void Spool::SetProgram(uint32_t pid, uint64_t start_time, int keeper_error) {
  if (!taking_) return;
  header_.program_pid = pid;
  header_.program_start = start_time;
  header_.keeper_error = keeper_error;
  if (pwrite(file_, &header_, sizeof(header_), 0) != sizeof(header_)) {
    GiveUp(WhyNot("it could not be written"));
  }
}

std::optional<uint64_t> Spool::Append(SpoolEntry entry, std::span<const std::byte> body) {
  if (!taking_) return {};
  const uint64_t most = end_ + sizeof(entry) + body.size() + 8;
  if (most > most_bytes_) {
    GiveUp("it came to its greatest size");
    return {};
  }
  if (most > next_look_ && IsDiskScarce()) {
    GiveUp(kDiskIsScarce);
    return {};
  }
  const uint64_t bytes = WriteEntry(file_, end_, entry, body);
  if (bytes == 0) {
    GiveUp(WhyNot("it could not be written"));
    return {};
  }
  const uint64_t offset = end_ + sizeof(entry);
  end_ += bytes;
  return offset;
}

void Spool::Read(uint64_t offset, std::span<std::byte> into) const {
  while (!into.empty()) {
    const ssize_t bytes = pread(file_, into.data(), into.size(), static_cast<off_t>(offset));
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) {
      throw Error(ErrorKind::kDevice,
                  fmt::format("cannot read '{}' ({})", path_,
                              bytes < 0 ? std::strerror(errno) : "it was shortened"));
    }
    into = into.subspan(static_cast<size_t>(bytes));
    offset += static_cast<uint64_t>(bytes);
  }
}

void Spool::TakeOut(uint64_t offset, uint64_t bytes) const {
  // A file system that cannot do this keeps the blocks until the file is removed.
  static_cast<void>(fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                              static_cast<off_t>(offset), static_cast<off_t>(bytes)));
}

void Spool::GiveUp(const std::string& why_not) {
  if (!taking_) return;
  taking_ = false;
  header_.whole = 0;
  // A file that does not say that parts are missing must not be found.
  if (pwrite(file_, &header_, sizeof(header_), 0) != sizeof(header_)) unlink(path_.c_str());
  // A part of an entry that the disk did not take whole.
  static_cast<void>(ftruncate(file_, static_cast<off_t>(end_)) == 0);
  why_not_ = why_not;
}

}  // namespace acltape::collector
