// Dropping the oldest part of a trace while it is written. The pages that become free are used
// again, so that the file does not grow.
#include <string>
#include <unordered_set>
#include <vector>

#include "storage/schema.h"
#include "storage/writer_state.h"

namespace acltape::storage {
namespace {

int64_t Number(Database& database, const char* sql) {
  Statement statement(database, sql);
  return statement.Next() ? statement.Integer(0) : 0;
}

std::unordered_set<std::string> Digests(Database& database, const char* sql, int64_t before_call) {
  std::unordered_set<std::string> digests;
  Statement statement(database, sql);
  if (before_call != 0) statement.Bind(1, before_call);
  while (statement.Next()) digests.emplace(statement.Text(0));
  return digests;
}

// Runs a statement that deletes rows or forgets what they name; returns how many rows changed.
int64_t RunBefore(Database& database, const char* sql, int64_t value) {
  Statement statement(database, sql);
  statement.Bind(1, value);
  statement.Run();
  return sqlite3_changes64(database.handle());
}

constexpr char kOldSnapshots[] = "SELECT DISTINCT digest FROM snapshot WHERE call_id < ?";
constexpr char kAllSnapshots[] = "SELECT DISTINCT digest FROM snapshot";

// Rows of a call, but for calls that are always kept.
constexpr const char* kOfCalls[] = {
    "DELETE FROM call_extra WHERE call_id < ? AND call_id NOT IN (SELECT call_id FROM kept_call)",
    "DELETE FROM snapshot WHERE call_id < ? AND call_id NOT IN (SELECT call_id FROM kept_call)",
    "DELETE FROM device_span WHERE call_id < ?",
    "DELETE FROM failure_text WHERE call_id < ? AND call_id NOT IN (SELECT call_id FROM kept_call)",
    "DELETE FROM scope_range WHERE last_call < ?",
    "DELETE FROM step WHERE last_call < ?",
    "DELETE FROM recorded_window WHERE last_call < ?"};

// Rows lose the names of calls that are gone. Each statement is one pass over its table.
constexpr const char* kForget[] = {
    "DELETE FROM device_span WHERE call_id NOT IN (SELECT call_id FROM call_row)",
    "UPDATE call_row SET parent_id = NULL WHERE parent_id NOT IN (SELECT call_id FROM call_row)",
    "UPDATE call_extra SET forward_call = NULL WHERE forward_call NOT IN (SELECT call_id FROM "
    "call_row)",
    "UPDATE buffer_row SET alloc_call = NULL WHERE alloc_call NOT IN (SELECT call_id FROM "
    "call_row)",
    "UPDATE stream SET create_call = NULL WHERE create_call NOT IN (SELECT call_id FROM call_row)",
    "UPDATE event SET create_call = NULL WHERE create_call NOT IN (SELECT call_id FROM call_row)"};

}  // namespace

int64_t Writer::UsedBytes() {
  Database& database = state_->database;
  return (Number(database, "PRAGMA page_count") - Number(database, "PRAGMA freelist_count")) *
         Number(database, "PRAGMA page_size");
}

void Writer::KeepAlways(int64_t call_id) {
  State_& s = *state_;
  s.MakeKeptCalls();
  Statement insert(s.database, "INSERT OR IGNORE INTO kept_call VALUES (?)");
  insert.Bind(1, call_id);
  insert.Run();
}

void Writer::State_::MakeKeptCalls() {
  if (has_kept_calls) return;
  CommitNow();
  database.Execute("CREATE TEMP TABLE kept_call(call_id INTEGER PRIMARY KEY)");
  has_kept_calls = true;
}

Writer::Dropped Writer::DropBefore(int64_t call_id, int64_t before_ns,
                                   const std::function<bool(const std::string&)>& is_old) {
  State_& s = *state_;
  s.MakeKeptCalls();
  s.CommitNow();
  s.Begin();
  s.dropped = true;
  s.totals.GiveUp();
  Dropped dropped;
  const auto old_digests = Digests(s.database, kOldSnapshots, call_id);
  dropped.calls = RunBefore(s.database,
                            "DELETE FROM call_row WHERE call_id < ? AND call_id NOT IN (SELECT "
                            "call_id FROM kept_call)",
                            call_id);
  for (const char* sql : kOfCalls) RunBefore(s.database, sql, call_id);
  RunBefore(s.database, "DELETE FROM buffer_row WHERE alloc_ns + life_ns < ?",
            before_ns - s.options.base_ns);
  IndexPayloads(s.database);
  const auto used = Digests(s.database, kAllSnapshots, 0);
  Statement size(s.database, "SELECT sum(bytes) FROM payload WHERE digest = ?");
  Statement remove(s.database, "DELETE FROM payload WHERE digest = ?");
  for (const std::string& digest : old_digests) {
    if (used.contains(digest) || !is_old(digest)) continue;
    size.Bind(1, digest);
    if (size.Next()) s.payload_bytes -= size.Integer(0);
    size.Reset();
    remove.Bind(1, digest);
    remove.Run();
    s.payloads.erase(digest);
    dropped.digests.push_back(digest);
  }
  s.CommitNow();
  return dropped;
}

void Writer::ForgetDropped() {
  State_& s = *state_;
  if (!s.dropped) return;
  s.CommitNow();
  s.Begin();
  for (const char* sql : kForget) s.database.Execute(sql);
  s.CommitNow();
  const int64_t free_pages = Number(s.database, "PRAGMA freelist_count");
  if (free_pages * 8 > Number(s.database, "PRAGMA page_count")) s.database.Execute("VACUUM");
}

}  // namespace acltape::storage
