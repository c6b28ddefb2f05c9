#include "recorder/collector/spool_contents.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>

#include "recorder/collector/spool.h"

namespace acltape::collector {
namespace {

// Reads a file from its front to its end, and passes over most of it.
class ForwardReader {
 public:
  explicit ForwardReader(int file) : file_(file), buffer_(kBuffer) {
    struct stat status;
    if (fstat(file, &status) == 0) size_ = static_cast<uint64_t>(status.st_size);
  }

  uint64_t size() const { return size_; }

  template <typename T>
  bool Read(uint64_t offset, T* into) {
    const bool there =
        offset >= begin_ && offset - begin_ <= bytes_ && bytes_ - (offset - begin_) >= sizeof(T);
    if (!there && !Fill(offset, sizeof(T))) return false;
    std::memcpy(into, buffer_.data() + (offset - begin_), sizeof(T));
    return true;
  }

 private:
  static constexpr size_t kBuffer = 64 << 10;

  bool Fill(uint64_t offset, size_t least) {
    begin_ = offset;
    bytes_ = 0;
    while (bytes_ < least) {
      const ssize_t part = pread(file_, buffer_.data() + bytes_, buffer_.size() - bytes_,
                                 static_cast<off_t>(offset + bytes_));
      if (part < 0 && errno == EINTR) continue;
      if (part <= 0) return false;
      bytes_ += static_cast<size_t>(part);
    }
    return true;
  }

  int file_;
  std::vector<char> buffer_;
  uint64_t size_ = 0;
  uint64_t begin_ = 0;  // beginning of the buffered bytes
  size_t bytes_ = 0;
};

// The latest logs of slots, while entries are read.
class LatestLogs {
 public:
  void Open(uint32_t log, const SpoolOpen& opening) {
    const auto [place, fresh] = of_slot_.try_emplace(opening.slot);
    if (!fresh) slot_of_.erase(place->second.log);
    place->second = {log, opening.slot, opening.generation, 0, false};
    slot_of_[log] = opening.slot;
  }
  void Add(uint32_t log, uint64_t bytes) {
    if (SpooledLog* found = Find(log)) found->taken += bytes;
  }
  void End(uint32_t log) {
    if (SpooledLog* found = Find(log)) found->ended = true;
  }
  std::vector<SpooledLog> All() const {
    std::vector<SpooledLog> all;
    for (const auto& [slot, log] : of_slot_) all.push_back(log);
    std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.log < b.log; });
    return all;
  }

 private:
  SpooledLog* Find(uint32_t log) {
    const auto found = slot_of_.find(log);
    return found != slot_of_.end() ? &of_slot_[found->second] : nullptr;
  }

  std::map<uint32_t, SpooledLog> of_slot_;
  std::map<uint32_t, uint32_t> slot_of_;  // slots of the logs in `of_slot_`
};

}  // namespace

SpoolContents ReadContents(int file) {
  SpoolContents contents;
  contents.end = sizeof(SpoolHeader);
  ForwardReader reader(file);
  LatestLogs latest;
  SpoolEntry entry;
  while (!contents.closed && reader.Read(contents.end, &entry)) {
    const uint64_t body = contents.end + sizeof(entry);
    if (entry.bytes > reader.size() - body) break;
    const uint64_t next = body + entry.bytes + (8 - entry.bytes % 8) % 8;
    if (next > reader.size()) break;
    if (entry.kind == SpoolKind::kOpen) {
      SpoolOpen opening;
      if (!reader.Read(body, &opening)) break;
      latest.Open(entry.log, opening);
      contents.logs = entry.log + 1;
    } else if (entry.kind == SpoolKind::kRecords) {
      latest.Add(entry.log, entry.bytes);
    } else if (entry.kind == SpoolKind::kEnd) {
      latest.End(entry.log);
    } else {
      contents.closed = entry.kind == SpoolKind::kClosed;
      if (!contents.closed) break;
    }
    contents.end = next;
  }
  contents.slots = latest.All();
  return contents;
}

}  // namespace acltape::collector
