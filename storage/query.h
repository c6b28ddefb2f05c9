// Read-only SQL over a trace: the named queries, and any statement that does not write.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "storage/reader.h"

namespace acltape::storage {

struct NamedQuery {
  std::string_view name;
  std::string_view description;  // one line for the list of queries
  std::string_view sql;
};
std::span<const NamedQuery> NamedQueries();
// nullptr when there is none of this name.
const NamedQuery* FindNamedQuery(std::string_view name);

struct Blob {
  std::vector<uint8_t> bytes;
};
// One value as SQLite has it: NULL, integer, real, text, blob.
using Cell = std::variant<std::monostate, int64_t, double, std::string, Blob>;

// The value of a cell that acltape writes as a whole number, or as a text. Error kTrace when it is
// something else.
int64_t IntegerIn(const Cell& cell);
const std::string& TextIn(const Cell& cell);

struct Table {
  std::vector<std::string> columns;
  std::vector<std::vector<Cell>> rows;
};

// Runs one statement. Error kUsage when it is empty, wrong, more than one statement, or would
// write; kTrace when the file is damaged. `limit` rows at most, 0: all.
Table RunQuery(const Reader& reader, std::string_view sql, int64_t limit = 0);

// Gives the result row by row, for results that do not fit in memory. `on_columns` is called once,
// before all rows; `on_row` returns false to stop.
void RunQuery(const Reader& reader, std::string_view sql,
              const std::function<void(const std::vector<std::string>&)>& on_columns,
              const std::function<bool(std::vector<Cell>&)>& on_row);

}  // namespace acltape::storage
