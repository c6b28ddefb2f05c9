#include "storage/writer.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "storage/process_identity.h"
#include "storage/schema.h"
#include "storage/stored_totals.h"
#include "storage/writer_state.h"

namespace acltape::storage {

bool MakeEmptyTrace(Database& database, int64_t page_bytes, int64_t room) {
  // Indexes are sorted in files: in memory they would take as much as the trace.
  database.Execute(("PRAGMA page_size=" + std::to_string(page_bytes) +
                    "; PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF;"
                    "PRAGMA cache_size=-65536; PRAGMA temp_store=FILE;")
                       .c_str());
  constexpr int64_t kMostJournalBytes = 8 << 20;
  const int64_t pages = std::clamp(room / 4, 32 * page_bytes, kMostJournalBytes) / page_bytes;
  database.Execute(("PRAGMA wal_autocheckpoint=" + std::to_string(pages)).c_str());
  CreateSchema(database);
  return true;
}

Writer::Writer(const std::string& path, const Options& options) {
  auto claim = std::make_unique<FileClaim>(path, options.overwrite);
  try {
    state_ = std::make_unique<State_>(path, options, std::move(claim));
    SetMeta("schema_version", std::to_string(kSchemaVersion));
    SetMeta("state", "recording");
    SetMeta("base_ns", std::to_string(options.base_ns));
    // Tells a reader whether the state "recording" is still true.
    SetMeta("collector_pid", std::to_string(getpid()));
    SetMeta("collector_start", std::to_string(ProcessStartTime(getpid())));
    SetMeta("collector_boot", BootIdentity());
    Commit();
  } catch (...) {
    state_.reset();
    RemoveTraceFiles(path);
    throw;
  }
}

Writer::~Writer() {
  if (state_ == nullptr || state_->finished) return;
  try {
    Finish("partial");
  } catch (const std::exception&) {
    // The trace stays as it was committed; its state reads as partial once this process is gone.
    state_->Rollback();
  }
}

int Writer::claim() const { return state_->claim->file(); }

void Writer::SetMeta(const std::string& key, const std::string& value) {
  state_->SetMeta(key, value);
}

void Writer::Commit() { state_->CommitNow(); }
int64_t Writer::commits() const { return state_->commits; }
bool Writer::disk_is_full() const { return state_->room.in_use(); }
int64_t Writer::reserved_bytes() const { return state_->room.bytes(); }
int64_t Writer::uncommitted_rows() const { return state_->pending_rows; }
int64_t Writer::payload_bytes() const { return state_->payload_bytes; }

// One file: the journal goes into it. A reader that has the trace open can hold this up for a
// while; then the trace stays a pair of files, which is as good to open.
void Writer::State_::Fold() {
  sqlite3_busy_timeout(database.handle(), 3000);
  const int code =
      sqlite3_exec(database.handle(), "PRAGMA journal_mode=DELETE", nullptr, nullptr, nullptr);
  if (code != SQLITE_OK && (code & 0xff) != SQLITE_BUSY && (code & 0xff) != SQLITE_LOCKED) {
    database.Fail(code, "closing it");
  }
}

void Writer::State_::IfThereIsRoom(const std::function<void()>& add) {
  if (room.in_use()) return;
  try {
    add();
  } catch (const Error&) {
    if (!room.in_use()) throw;
    Rollback();
  }
}

void Writer::State_::AddUp() {
  if (!WriteCallTotals(database, totals, buffer_ids.size())) AddUpCalls(database);
  AddUpSteps(database);
}

void Writer::Finish(const std::string& state) {
  State_& s = *state_;
  s.SetMeta("state", state);
  s.CommitNow();
  s.IfThereIsRoom([&s] { s.AddUp(); });
  s.IfThereIsRoom([&s] { CreateIndexes(s.database); });
  s.room.GiveBackAll();
  s.Fold();
  s.finished = true;
}

void Writer::FinishAfterFailure(const LedgerEntry& entry) noexcept {
  State_& s = *state_;
  s.Rollback();
  s.EmptyJournal();
  s.room.GiveBackAll();
  try {
    s.AddLedger(entry);
    s.SetMeta("state", "partial");
    s.CommitNow();
    s.Fold();
  } catch (const std::exception&) {
    // No room even for that. What was committed is openable, and reads as partial.
    s.Rollback();
  }
  s.finished = true;
}

void Writer::Discard() noexcept {
  State_& s = *state_;
  s.Rollback();
  s.finished = true;
  const std::string path = std::move(s.path);
  state_.reset();
  RemoveTraceFiles(path);
}

}  // namespace acltape::storage
