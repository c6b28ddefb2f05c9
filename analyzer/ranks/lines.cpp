#include "analyzer/ranks/lines.h"

#include <fmt/format.h>

#include <filesystem>

#include "storage/database.h"
#include "storage/nesting.h"

namespace acltape::analyzer::ranks {

namespace {

// "train.py:30" of the first row, which has a file and a line; empty: there is none.
std::string PlaceOf(storage::Statement& row) {
  if (!row.Next() || row.IsNull(0)) return "";
  return fmt::format("{}:{}", std::filesystem::path(row.Text(0)).filename().string(),
                     row.Integer(1));
}

}  // namespace

std::string Lines::Of(int64_t call_id) {
  const auto [entry, fresh] = known_.try_emplace(call_id);
  if (!fresh) return entry->second;
  storage::Statement own(
      trace_.database(),
      "WITH RECURSIVE up(call_id, depth) AS (SELECT ?1, 0 UNION ALL SELECT c.parent_id, depth + 1 "
      "FROM up JOIN call_row c ON c.call_id = up.call_id WHERE c.parent_id < c.call_id AND depth "
      "< ?2) "
      "SELECT k.file, k.line FROM up JOIN call_location k ON k.call_id = up.call_id "
      "ORDER BY up.depth LIMIT 1");
  own.Bind(1, call_id);
  own.Bind(2, storage::kMostAround);
  entry->second = PlaceOf(own);
  if (!entry->second.empty()) return entry->second;
  storage::Statement before(
      trace_.database(),
      "SELECT k.file, k.line FROM call_row c JOIN stack_location k ON k.stack_id = c.stack_id "
      "JOIN thread t ON t.thread_id = c.thread_id WHERE c.call_id < ?1 AND t.process_id = "
      "(SELECT o.process_id FROM call_row s JOIN thread o ON o.thread_id = s.thread_id "
      "WHERE s.call_id = ?1) ORDER BY c.call_id DESC LIMIT 1");
  before.Bind(1, call_id);
  const std::string place = PlaceOf(before);
  entry->second = place.empty() ? fmt::format("call {}", call_id) : "after " + place;
  return entry->second;
}

std::string Lines::Named(int64_t call_id) const {
  storage::Statement row(
      trace_.database(),
      "SELECT ifnull(p.op, c.op) FROM call c LEFT JOIN call p ON p.call_id = c.parent_id "
      "AND p.leaf = 1 WHERE c.call_id = ?1");
  row.Bind(1, call_id);
  return row.Next() ? fmt::format("{} (call {})", row.Text(0), call_id)
                    : fmt::format("call {}", call_id);
}

}  // namespace acltape::analyzer::ranks
