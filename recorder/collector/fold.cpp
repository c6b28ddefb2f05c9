#include "recorder/collector/fold.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "recorder/collector/backlog.h"
#include "recorder/collector/fold_choice.h"
#include "recorder/collector/left_out.h"
#include "recorder/collector/spool.h"
#include "recorder/collector/trace_builder.h"
#include "recorder/wire/clock.h"
#include "storage/database.h"
#include "storage/file_claim.h"
#include "storage/process_identity.h"
#include "storage/reader.h"
#include "storage/schema.h"
#include "storage/side_files.h"
#include "storage/writer.h"

namespace acltape::collector {
namespace {

using storage::Severity;

constexpr char kFoldingSuffix[] = ".folding";
constexpr uint64_t kChunk = uint64_t{8} << 20;

class File {
 public:
  File(const std::string& path, int flags) : number_(open(path.c_str(), flags | O_CLOEXEC)) {}
  ~File() {
    if (number_ >= 0) close(number_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  int number() const { return number_; }
  uint64_t size() const {
    struct stat status;
    return fstat(number_, &status) == 0 ? static_cast<uint64_t>(status.st_size) : 0;
  }
  // Fewer bytes than asked for at the end of the file, or where it cannot be read.
  size_t Read(uint64_t offset, void* into, size_t bytes) const {
    size_t done = 0;
    while (done < bytes) {
      const ssize_t part = pread(number_, static_cast<char*>(into) + done, bytes - done,
                                 static_cast<off_t>(offset + done));
      if (part < 0 && errno == EINTR) continue;
      if (part <= 0) break;
      done += static_cast<size_t>(part);
    }
    return done;
  }

 private:
  int number_;
};

// True if a record is at the front that is longer than what was read.
bool IsCut(std::span<const std::byte> bytes) {
  constexpr uint32_t kMost = uint32_t{256} << 20;  // more than any record has
  wire::RecordHeader header;
  if (bytes.size() < sizeof(header)) return true;
  std::memcpy(&header, bytes.data(), sizeof(header));
  return header.bytes > bytes.size() && header.bytes <= kMost;
}

// The bytes of the whole records at the front.
size_t WholeRecords(std::span<const std::byte> bytes) {
  size_t offset = 0;
  while (offset < bytes.size()) {
    const RecordBytes record = FirstRecord(bytes.subspan(offset));
    if (record.empty()) break;
    offset += record.size();
  }
  return offset;
}

// Gives the entries of a spool to logs, as they were received.
class SpoolReader {
 public:
  SpoolReader(const File& file, TraceBuilder& trace, wire::ArenaHeader& ids)
      : file_(file), trace_(trace), ids_(ids), size_(file.size()) {}

  void ReadAll(const std::function<void(int64_t, int64_t)>& progress) {
    uint64_t offset = sizeof(SpoolHeader);
    SpoolEntry entry;
    while (offset + sizeof(entry) <= size_ &&
           file_.Read(offset, &entry, sizeof(entry)) == sizeof(entry)) {
      offset += sizeof(entry);
      const uint64_t there = std::min(entry.bytes, size_ - offset);
      if (!Take(entry, offset, there)) break;
      if (there < entry.bytes) break;
      offset += entry.bytes + (8 - entry.bytes % 8) % 8;
      if (progress) progress(static_cast<int64_t>(offset), static_cast<int64_t>(size_));
    }
    for (const auto& log : logs_) {
      if (log != nullptr) FinishLog(trace_, *log, {});
    }
  }

  // The counts of the recorder, if the rings were emptied to their end.
  const std::optional<SpoolClosed>& closed() const { return closed_; }

 private:
  // False: the spool ends here.
  bool Take(const SpoolEntry& entry, uint64_t offset, uint64_t there) {
    ids_.next_call_id.store(std::max(ids_.next_call_id.load(), entry.next_call_id));
    ids_.next_buffer_id.store(std::max(ids_.next_buffer_id.load(), entry.next_buffer_id));
    if (entry.kind == SpoolKind::kOpen) return TakeOpen(entry, offset, there);
    if (entry.kind == SpoolKind::kClosed) {
      SpoolClosed counts;
      const bool read =
          there == sizeof(counts) && file_.Read(offset, &counts, sizeof(counts)) == sizeof(counts);
      if (read) closed_ = counts;
      return false;
    }
    if (entry.log >= logs_.size() || logs_[entry.log] == nullptr) return false;
    if (entry.kind == SpoolKind::kRecords) {
      TakeRecords(*logs_[entry.log], offset, there, there < entry.bytes);
      return true;
    }
    SlotEnd end;
    if (entry.kind != SpoolKind::kEnd || there != sizeof(end)) return false;
    if (file_.Read(offset, &end, sizeof(end)) != sizeof(end)) return false;
    FinishLog(trace_, *logs_[entry.log], end);
    logs_[entry.log] = nullptr;
    return true;
  }

  bool TakeOpen(const SpoolEntry& entry, uint64_t offset, uint64_t there) {
    constexpr uint64_t kMostName = 4096;
    SpoolOpen fixed;
    if (entry.log != logs_.size() || there != entry.bytes) return false;
    if (there < sizeof(fixed) || there > sizeof(fixed) + kMostName) return false;
    LogOrigin origin;
    origin.process_name.resize(there - sizeof(fixed));
    if (file_.Read(offset, &fixed, sizeof(fixed)) != sizeof(fixed)) return false;
    file_.Read(offset + sizeof(fixed), origin.process_name.data(), origin.process_name.size());
    origin.pid = fixed.pid;
    origin.tid = fixed.tid;
    if (fixed.has_rank != 0 && fixed.rank >= 0) origin.rank = fixed.rank;
    logs_.push_back(std::make_unique<RingLog>(trace_, entry.log, origin));
    return true;
  }

  // The recorder may have been killed while it wrote the last piece: `cut` then.
  void TakeRecords(RingLog& log, uint64_t offset, uint64_t there, bool cut) {
    uint64_t window = kChunk;
    while (there > 0) {
      const size_t bytes = std::min(window, there);
      if (buffer_.size() < bytes) buffer_.resize(bytes);
      const std::span<const std::byte> read(buffer_.data(),
                                            file_.Read(offset, buffer_.data(), bytes));
      size_t whole = WholeRecords(read);
      if (whole == 0 && read.size() == bytes && bytes < there && IsCut(read)) {
        window *= 2;
        continue;
      }
      if (whole == 0 && cut) return;
      if (whole == 0) whole = read.size();  // no record: the log says so and ends
      if (whole == 0) return;
      std::span<const std::byte> rest = read.first(whole);
      while (!rest.empty()) rest = rest.subspan(log.Consume(rest));
      offset += whole;
      there -= whole;
      window = kChunk;
    }
  }

  const File& file_;
  TraceBuilder& trace_;
  wire::ArenaHeader& ids_;
  uint64_t size_;
  std::vector<std::unique_ptr<RingLog>> logs_;  // null: ended
  std::vector<std::byte> buffer_;
  std::optional<SpoolClosed> closed_;
};

// Rows of the ledger for what a killed recorder could not say itself.
void NoteKill(const SpoolHeader& header, const std::optional<SpoolClosed>& closed,
              wire::ArenaHeader& counted, TraceBuilder& trace) {
  if (closed) {
    PutCounts(*closed, counted);
    NoteLeftOut(counted, trace);
    if (closed->outlived != 0) NoteOutlived(trace);
    trace.Note(Severity::kNotice, "recorder_killed", "trace",
               "acltape was killed while it recorded; what it had received and what the threads' "
               "rings held is in the trace",
               "let acltape end by itself");
    return;
  }
  const std::string keeper =
      header.keeper_error == 0
          ? "the process that keeps what lies in the threads' rings did not end its work"
          : fmt::format(
                "no process could be started that keeps what lies in the threads' rings "
                "({})",
                std::strerror(header.keeper_error));
  trace.Note(Severity::kDataLoss, "recorder_killed", "trace",
             fmt::format("acltape was killed while it recorded, and {}; the trace holds what was "
                         "received, and lacks what was in the rings and what came later",
                         keeper),
             "let acltape end by itself");
}

// Copies the facts that the recorder wrote when it began: the command, the machine and so on.
void CopyFacts(const storage::Reader& from, storage::Writer& to) {
  constexpr std::string_view kOwn[] = {"state", "schema_version", "base_ns"};
  for (const auto& [key, value] : from.AllMeta()) {
    const bool own = std::find(std::begin(kOwn), std::end(kOwn), key) != std::end(kOwn) ||
                     key.starts_with("collector_");
    if (!own) to.SetMeta(key, value);
  }
  storage::Statement quirks(from.database(), "SELECT name, description FROM quirk");
  while (quirks.Next()) to.AddQuirk(std::string(quirks.Text(0)), std::string(quirks.Text(1)));
}

// How the recorder was to record, for what it says of its cost.
void TakeSettings(const std::string& trace, wire::ArenaHeader& header) {
  const storage::Reader from(trace);
  const std::string payload = from.Meta("payload");
  for (uint32_t policy = 0; policy < std::size(wire::kPayloadNames); ++policy) {
    if (payload == wire::kPayloadNames[policy]) {
      header.payload = static_cast<wire::PayloadPolicy>(policy);
    }
  }
  storage::Statement ring(from.database(),
                          "SELECT json_extract(value, '$.ring_bytes') FROM meta "
                          "WHERE key = 'recorder' AND json_valid(value)");
  if (ring.Next()) header.ring_bytes = static_cast<uint64_t>(std::max<int64_t>(0, ring.Integer(0)));
}

// Writes the new trace beside the old one.
void WriteAnew(const std::string& trace, const std::string& path, const File& spool,
               const SpoolHeader& header, const std::function<void(int64_t, int64_t)>& progress,
               Folded& folded) {
  storage::Writer::Options options;
  options.overwrite = true;
  options.base_ns = header.base_ns;
  options.page_bytes = storage::Reader(trace).database().Integer("PRAGMA page_size");
  storage::Writer writer(path, options);
  try {
    {
      const storage::Reader old(trace);
      folded.calls_before = old.CallCount(false);
      CopyFacts(old, writer);
    }
    writer.AdoptContents(trace);
    wire::ArenaHeader ids{};
    TakeSettings(trace, ids);
    std::string steps_from(header.steps_from, strnlen(header.steps_from, wire::kStepNameBytes));
    TraceBuilder builder(writer, ids, {header.base_ns, header.base_tick, header.ns_per_tick},
                         std::move(steps_from));
    SpoolReader reader(spool, builder, ids);
    reader.ReadAll(progress);
    NoteKill(header, reader.closed(), ids, builder);
    builder.Finish();
    folded.calls = builder.calls();
    if (reader.closed()) {
      writer.SetMeta("torch_processes", std::to_string(reader.closed()->torch_processes));
      writer.SetMeta("acl_processes", std::to_string(reader.closed()->acl_processes));
    }
    writer.Finish("partial");
  } catch (...) {
    writer.Discard();
    throw;
  }
}

[[noreturn]] void Fail(const std::string& doing, const std::string& trace) {
  throw Error(ErrorKind::kDevice,
              fmt::format("cannot {} '{}' ({})", doing, trace, std::strerror(errno)));
}

enum class Claim { kTaken, kTakenLater, kRefused };

// Takes the trace, and waits while another process holds it for a while: who folds, the keeper of a
// recording that has ended, or a recorder that is dying. Refused: the recording goes on.
Claim TakeClaim(const std::string& trace, int file, const SpoolHeader& header, Folded& folded) {
  constexpr uint64_t kLooksLike = 200'000'000;  // ns for which a program that is killed may live
  const uint64_t begin = wire::MonotonicNs();
  Claim taken = Claim::kTaken;
  useconds_t pause = 500;
  while (flock(file, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return Claim::kRefused;
    const storage::Reader reader(trace);
    if (reader.State() == "recording") {
      const int64_t recorder = std::atoll(reader.Meta("collector_pid").c_str());
      if (!storage::ProcessIsDying(recorder)) return Claim::kRefused;
    } else if (storage::ProcessRuns(header.program_pid, header.program_start) &&
               !storage::ProcessIsDying(header.program_pid) &&
               wire::MonotonicNs() - begin > kLooksLike) {
      folded.goes_on = header.program_pid;
      return Claim::kRefused;
    }
    usleep(pause);
    pause = std::min<useconds_t>(2 * pause, 50000);
    taken = Claim::kTakenLater;
  }
  return taken;
}

}  // namespace

Folded FoldSpool(const std::string& trace,
                 const std::function<void(int64_t done, int64_t all)>& progress) {
  Folded folded;
  const std::string path = trace + storage::kSpoolSuffix;
  const File spool(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  SpoolHeader header;
  if (spool.number() < 0 || spool.Read(0, &header, sizeof(header)) != sizeof(header) ||
      header.magic != kSpoolMagic) {
    return folded;
  }
  // Who records holds the trace, and so does who folds.
  const File claim(trace, O_RDONLY | O_NONBLOCK);
  if (claim.number() < 0) return folded;
  const Claim taken = TakeClaim(trace, claim.number(), header, folded);
  if (taken == Claim::kRefused) return folded;
  // Who folded has put another file in its place.
  if (taken == Claim::kTakenLater) {
    flock(claim.number(), LOCK_UN);
    return FoldSpool(trace, progress);
  }
  {
    const storage::Reader old(trace);
    if (old.Meta(kSpoolKey) != SpoolIdentity(header)) return folded;
    if (old.State() == "recording") return folded;
    if (old.Meta("state") != "recording" || header.whole == 0) {
      unlink(path.c_str());
      return folded;
    }
    if (header.version != kSpoolVersion || header.arena_version != wire::kArenaVersion ||
        old.Meta("schema_version") != std::to_string(storage::kSchemaVersion)) {
      throw Error(ErrorKind::kTrace,
                  fmt::format("'{}' was received by another version of acltape than this one; open "
                              "the trace with that version, or remove the file",
                              path));
    }
  }
  const std::string folding = trace + kFoldingSuffix;
  struct stat status;
  if (lstat(folding.c_str(), &status) == 0 && !IsLeftByFold(folding)) {
    throw Error(ErrorKind::kDevice,
                fmt::format("'{}' is in the way, and no acltape wrote it; move it away", folding));
  }
  WriteAnew(trace, folding, spool, header, progress, folded);
  const bool holds_all = HoldsAllCalls(folding, trace);
  if (!holds_all && folded.calls <= folded.calls_before) {
    storage::RemoveTraceFiles(folding);
    folded.kept = NameForKept(path);
    if (rename(path.c_str(), folded.kept.c_str()) != 0) Fail("rename", path);
    return folded;
  }
  {
    // Its journal must not be taken for that of the new file.
    storage::Database old(trace, SQLITE_OPEN_READWRITE);
    old.Execute("PRAGMA journal_mode=DELETE");
  }
  if (!holds_all) folded.kept = NameForKept(trace);
  if ((!holds_all && link(trace.c_str(), folded.kept.c_str()) != 0) ||
      rename(folding.c_str(), trace.c_str()) != 0) {
    const int number = errno;
    storage::RemoveTraceFiles(folding);
    errno = number;
    Fail("replace", trace);
  }
  unlink(path.c_str());
  folded.done = true;
  return folded;
}

}  // namespace acltape::collector
