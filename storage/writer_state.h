// The state of a Writer. Private to writer.cpp (opening, transactions, closing) and writer_rows.cpp
// (one function per kind of row).
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "storage/call_totals.h"
#include "storage/database.h"
#include "storage/file_claim.h"
#include "storage/id_set.h"
#include "storage/payload_rows.h"
#include "storage/reserved_room.h"
#include "storage/tables.h"
#include "storage/writer.h"

namespace acltape::storage {

// Turns a new database into an empty trace; true. `room`: bytes that are kept free on its disk.
bool MakeEmptyTrace(Database& database, int64_t page_bytes, int64_t room);

struct Writer::State_ {
  State_(const std::string& file, const Options& wanted, std::unique_ptr<FileClaim> claimed)
      : path(file),
        claim(std::move(claimed)),
        room(file, wanted.reserve_bytes),
        options(Fitting(wanted, room.bytes())),
        database(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, room.vfs()) {}

  // A transaction must find room on a full disk, and so must what is in the journal.
  static Options Fitting(Options options, int64_t room) {
    const int64_t part = std::max(room / 4, int64_t{256} << 10);
    options.commit_bytes = std::min(options.commit_bytes, part);
    options.commit_rows = std::min(options.commit_rows, part / 128);
    return options;
  }
  // A content of this size has a transaction of its own, so that nothing else is lost with it.
  int64_t LargeContent() const { return options.commit_bytes / 8; }

  void Begin() {
    if (open_transaction) return;
    begin.Run();
    open_transaction = true;
  }
  void Wrote(int64_t rows = 1) {
    pending_rows += rows;
    if (pending_rows >= options.commit_rows) CommitNow();
  }
  void CommitNow() {
    pending_rows = 0;
    pending_bytes = 0;
    if (!open_transaction) return;
    calls.Flush();
    buffers.Flush();
    extras.Flush();
    device_spans.Flush();
    snapshots.Flush();
    commit.Run();
    open_transaction = false;
    ++commits;
  }
  void Rollback() noexcept {
    if (sqlite3_get_autocommit(database.handle()) == 0) {
      sqlite3_exec(database.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
    }
    calls.Clear();
    buffers.Clear();
    extras.Clear();
    device_spans.Clear();
    snapshots.Clear();
    open_transaction = false;
    pending_rows = 0;
  }

  // Rows that were rolled back lie in the journal, which takes room until it is short again.
  void EmptyJournal() noexcept {
    sqlite3_exec(database.handle(), "PRAGMA wal_checkpoint(TRUNCATE)", nullptr, nullptr, nullptr);
  }

  void SetMeta(const std::string& key, const std::string& value) {
    Begin();
    set_meta.Set<"key">(key);
    set_meta.Set<"value">(value);
    set_meta.Run();
    Wrote();
  }
  void AddLedger(const LedgerEntry& entry);
  void AddLargePayload(const std::string& digest, const void* data, size_t bytes);
  void Fold();
  // Adds something that makes queries fast, if there is room: nothing is missing without it.
  void IfThereIsRoom(const std::function<void()>& add);
  void AddUp();
  void MakeKeptCalls();

  std::string path;
  std::unique_ptr<FileClaim> claim;  // before the database, so that it ends after it
  ReservedRoom room;
  Options options;
  Database database;
  const bool has_schema = MakeEmptyTrace(database, options.page_bytes,
                                         room.bytes());  // before the statements that need it
  bool open_transaction = false;
  bool finished = false;
  bool has_kept_calls = false;  // the table of KeepAlways is there
  bool dropped = false;
  int64_t commits = 0;
  int64_t pending_rows = 0;
  int64_t pending_bytes = 0;
  int64_t payload_bytes = 0;

  std::unordered_map<std::string, int64_t> ops;
  std::unordered_map<std::string, int64_t> layouts;
  std::map<std::tuple<int64_t, std::string, std::string>, int64_t> scopes;
  std::unordered_map<int64_t, std::string> scope_paths;
  std::unordered_set<std::string> payloads;
  int64_t last_signature = 0;
  CallTotals totals;  // totals of the calls that were added; given up once some are dropped
  IdSet call_ids;
  IdSet buffer_ids;
  std::string json;  // reused for every buffers column

  Statement begin{database, "BEGIN IMMEDIATE"};
  Statement commit{database, "COMMIT"};
  RowInsert<tables::kMeta> set_meta{database, kReplace};
  TableBatch<tables::kCallRow> calls{database, kReplace};
  TableBatch<tables::kBufferRow> buffers{database, kReplace};
  TableBatch<tables::kCallExtra> extras{database, kReplace};
  TableBatch<tables::kDeviceSpan> device_spans{database};
  TableBatch<tables::kSnapshot> snapshots{database};
  RowInsert<tables::kOp> add_op{database};
  RowInsert<tables::kLayout> add_layout{database};
  RowInsert<tables::kSignature> add_signature{database};
  RowInsert<tables::kSignatureArgument> add_argument{database};
  PayloadRows payload_rows{database};
  RowInsert<tables::kFailureText> add_failure_text{database, kReplace};
  RowInsert<tables::kLedger> add_ledger{database, "INSERT INTO", kAddToCount};
};

}  // namespace acltape::storage
