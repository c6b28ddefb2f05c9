// The state of a Writer. Private to writer.cpp (opening, transactions, closing) and writer_rows.cpp
// (one function per kind of row).
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "storage/database.h"
#include "storage/file_claim.h"
#include "storage/payload_rows.h"
#include "storage/tables.h"
#include "storage/writer.h"

namespace acltape::storage {

// Turns a new database into an empty trace; true.
bool MakeEmptyTrace(Database& database);

struct Writer::State_ {
  State_(const std::string& file, const Options& wanted, std::unique_ptr<FileClaim> claimed)
      : path(file),
        options(wanted),
        claim(std::move(claimed)),
        database(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE) {
    Reserve();
  }
  ~State_() { ReleaseReserve(); }
  State_(const State_&) = delete;
  State_& operator=(const State_&) = delete;

  // Room for the last words on a full disk: as much as one transaction and the journal that has
  // not been folded yet can need. Less, or none, on a small disk. The file has no name, so that
  // nothing is left of it when this process is killed.
  void Reserve() {
    const std::string name = path + ".reserve";
    reserve = open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (reserve < 0) return;
    unlink(name.c_str());
    bool done = false;
    for (int64_t bytes = options.reserve_bytes; bytes >= 65536 && !done; bytes /= 4) {
      done = posix_fallocate(reserve, 0, bytes) == 0;
      if (!done) static_cast<void>(!ftruncate(reserve, 0));
    }
  }
  void ReleaseReserve() {
    if (reserve >= 0) close(reserve);
    reserve = -1;
  }

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
    commit.Run();
    open_transaction = false;
  }
  void Rollback() noexcept {
    if (sqlite3_get_autocommit(database.handle()) == 0) {
      sqlite3_exec(database.handle(), "ROLLBACK", nullptr, nullptr, nullptr);
    }
    calls.Clear();
    buffers.Clear();
    extras.Clear();
    device_spans.Clear();
    open_transaction = false;
    pending_rows = 0;
  }

  void SetMeta(const std::string& key, const std::string& value) {
    Begin();
    set_meta.Set<"key">(key);
    set_meta.Set<"value">(value);
    set_meta.Run();
    Wrote();
  }
  void AddLedger(const LedgerEntry& entry);
  void Fold();
  void MakeKeptCalls();

  std::string path;
  Options options;
  int reserve = -1;
  std::unique_ptr<FileClaim> claim;  // before the database, so that it ends after it
  Database database;
  const bool has_schema = MakeEmptyTrace(database);  // before the statements that need it
  bool open_transaction = false;
  bool finished = false;
  bool has_kept_calls = false;  // the table of KeepAlways is there
  bool dropped = false;
  int64_t pending_rows = 0;
  int64_t pending_bytes = 0;
  int64_t payload_bytes = 0;

  std::unordered_map<std::string, int64_t> ops;
  std::unordered_map<std::string, int64_t> layouts;
  std::map<std::tuple<int64_t, std::string, std::string>, int64_t> scopes;
  std::unordered_map<int64_t, std::string> scope_paths;
  std::unordered_set<std::string> payloads;
  int64_t last_signature = 0;
  std::string json;  // reused for every buffers column

  Statement begin{database, "BEGIN IMMEDIATE"};
  Statement commit{database, "COMMIT"};
  RowInsert<tables::kMeta> set_meta{database, kReplace};
  TableBatch<tables::kCallRow> calls{database, kReplace};
  TableBatch<tables::kBufferRow> buffers{database, kReplace};
  TableBatch<tables::kCallExtra> extras{database, kReplace};
  TableBatch<tables::kDeviceSpan> device_spans{database};
  RowInsert<tables::kOp> add_op{database};
  RowInsert<tables::kLayout> add_layout{database};
  RowInsert<tables::kSignature> add_signature{database};
  RowInsert<tables::kSignatureArgument> add_argument{database};
  PayloadRows payload_rows{database};
  RowInsert<tables::kSnapshot> add_snapshot{database};
  RowInsert<tables::kLedger> add_ledger{database, "INSERT INTO", kAddToCount};
};

}  // namespace acltape::storage
