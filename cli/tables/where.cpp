#include "cli/tables/where.h"

#include <algorithm>
#include <charconv>

#include "analyzer/program/acl_leaves.h"

namespace acltape::cli {
namespace {

// 0: the cell names no call.
int64_t CallOf(const Cell& cell) {
  if (const auto* number = std::get_if<int64_t>(&cell)) return *number;
  const auto* text = std::get_if<std::string>(&cell);
  int64_t call = 0;
  if (text != nullptr) std::from_chars(text->data(), text->data() + text->size(), call);
  return call;
}

}  // namespace

Table WithLines(const Table& table, std::string_view calls, const analyzer::SourceLines& lines) {
  const auto column = std::find(table.columns().begin(), table.columns().end(), calls);
  if (!lines.any() || column == table.columns().end()) return table;
  const auto column_index = column - table.columns().begin();
  std::vector<std::string> columns = table.columns();
  columns.insert(columns.begin() + column_index + 1, "where");
  Table result(std::move(columns));
  for (const std::vector<Cell>& row : table.rows()) {
    const int64_t call = CallOf(row[column_index]);
    std::vector<Cell> cells = row;
    cells.insert(cells.begin() + column_index + 1,
                 call == 0 ? Cell() : TextCell(lines.Of(analyzer::RecordedCall(call))));
    result.Add(std::move(cells));
  }
  return result;
}

}  // namespace acltape::cli
