// Read-only SQL over a trace: the named queries, and any statement that does not write.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "storage/cell.h"
#include "storage/reader.h"

namespace acltape::storage {

struct NamedQuery {
  std::string_view name;
  std::string_view description;  // one line for the list of queries
  // A comment /*picked COLUMN*/ stands where a condition on the call of a row belongs (PickedSql).
  std::string_view sql;
  // The column with the call that a row is; empty where rows are no calls.
  std::string_view call_column = {};
  // The query over the calls of the table temp.picked, where comments do not do.
  std::string_view over_picked = {};

  // True if some of the calls can be picked.
  bool TakesCalls() const;
};
std::span<const NamedQuery> NamedQueries();
// nullptr when there is none of this name.
const NamedQuery* FindNamedQuery(std::string_view name);

// The query over calls in, or not in, the temporary table `picked` (call_id INTEGER PRIMARY KEY),
// by the comments of its text.
std::string PickedSql(std::string_view sql, bool in);

// Runs one statement that somebody else wrote, or a named query, and gives the result row by row,
// so that it need not fit in memory. `on_columns` is called once, before all rows; `on_row` returns
// false to stop. Error kUsage when the statement is empty, wrong, more than one statement, or would
// write; kTrace when the file is damaged.
//
// acltape's own queries are a Statement (storage/database.h) whose values are bound.
void RunQuery(const Reader& reader, std::string_view sql,
              const std::function<void(const std::vector<std::string>&)>& on_columns,
              const std::function<bool(std::vector<Cell>&)>& on_row);

}  // namespace acltape::storage
