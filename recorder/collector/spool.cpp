#include "recorder/collector/spool.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/falloc.h>
#include <sys/random.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "storage/error.h"

namespace acltape::collector {
namespace {

constexpr uint64_t kLeastFreeBytes = uint64_t{256} << 20;

}  // namespace

std::string SpoolIdentity(const SpoolHeader& header) {
  return fmt::format("{:016x}{:016x}", header.identity[0], header.identity[1]);
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
  if (most_bytes < sizeof(header_)) return;
  file_ = open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file_ < 0) return;
  if (IsDiskScarce() || pwrite(file_, &header_, sizeof(header_), 0) != sizeof(header_)) {
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
  return fstatvfs(file_, &disk) == 0 && disk.f_bavail * disk.f_frsize < kLeastFreeBytes;
}

Spool::~Spool() { Remove(); }

void Spool::Remove() {
  taking_ = false;
  if (file_ < 0) return;
  unlink(path_.c_str());
  close(file_);
  file_ = -1;
}

std::optional<uint64_t> Spool::Append(SpoolEntry entry, std::span<const std::byte> body) {
  if (!taking_) return {};
  constexpr std::byte kZeros[8] = {};
  const size_t padding = (8 - body.size() % 8) % 8;
  const size_t bytes = sizeof(entry) + body.size() + padding;
  if (end_ + bytes > most_bytes_ || (end_ + bytes > next_look_ && IsDiskScarce())) {
    GiveUp();
    return {};
  }
  entry.bytes = body.size();
  const iovec parts[] = {{&entry, sizeof(entry)},
                         {const_cast<std::byte*>(body.data()), body.size()},
                         {const_cast<std::byte*>(kZeros), padding}};
  ssize_t written = 0;
  do {
    written = pwritev(file_, parts, 3, static_cast<off_t>(end_));
  } while (written < 0 && errno == EINTR);
  if (written != static_cast<ssize_t>(bytes)) {
    GiveUp();
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

void Spool::GiveUp() {
  if (!taking_) return;
  taking_ = false;
  header_.whole = 0;
  // A file that does not say that parts are missing must not be found.
  if (pwrite(file_, &header_, sizeof(header_), 0) != sizeof(header_)) unlink(path_.c_str());
  // A part of an entry that the disk did not take whole.
  static_cast<void>(ftruncate(file_, static_cast<off_t>(end_)) == 0);
}

}  // namespace acltape::collector
