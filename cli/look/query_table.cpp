#include "cli/look/query_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace acltape::cli {
namespace {

// Places of columns, -1: there is none.
int64_t ColumnOf(const Table& table, std::string_view name) {
  const auto& columns = table.columns();
  const auto found = std::find(columns.begin(), columns.end(), name);
  return found == columns.end() ? -1 : found - columns.begin();
}

int64_t IntegerOf(const Cell& cell) {
  const auto* number = std::get_if<int64_t>(&cell);
  return number == nullptr ? 0 : *number;
}

bool IsEmpty(const Cell& cell) {
  const auto* text = std::get_if<std::string>(&cell);
  return std::holds_alternative<std::monostate>(cell) || (text != nullptr && text->empty());
}

// "aclrtSynchronizeStream 12 times, aclrtMalloc"
std::string CountedOps(const std::map<std::string, int64_t>& ops) {
  std::string text;
  for (const auto& [op, calls] : ops) {
    text += (text.empty() ? "" : ", ") + op + (calls == 1 ? "" : fmt::format(" {} times", calls));
  }
  return text;
}

// The rows without a line become one, the last.
Table Folded(const Table& table) {
  const int64_t where = ColumnOf(table, "where");
  const int64_t op = ColumnOf(table, "op");
  const int64_t duration = ColumnOf(table, "duration_ns");
  const auto& rows = table.rows();
  const auto without_line = [&](const std::vector<Cell>& row) { return IsEmpty(row[where]); };
  if (where < 0 || op < 0 || std::count_if(rows.begin(), rows.end(), without_line) < 2) {
    return table;
  }
  if (std::all_of(rows.begin(), rows.end(), without_line)) return table;
  std::vector<std::string> columns = table.columns();
  columns.insert(columns.begin() + where + 1, "calls");
  Table folded(std::move(columns));
  std::vector<Cell> rest(table.columns().size());
  std::map<std::string, int64_t> ops;
  int64_t calls = 0;
  int64_t total = 0;
  for (const std::vector<Cell>& row : rows) {
    if (!without_line(row)) {
      std::vector<Cell> cells = row;
      cells.insert(cells.begin() + where + 1, int64_t{1});
      folded.Add(std::move(cells));
      continue;
    }
    ++calls;
    if (const auto* name = std::get_if<std::string>(&row[op])) ++ops[*name];
    if (duration >= 0) total += IntegerOf(row[duration]);
  }
  rest[where] = "no line: in the framework or its adapter";
  rest[op] = CountedOps(ops);
  if (duration >= 0) rest[duration] = total;
  rest.insert(rest.begin() + where + 1, calls);
  folded.Add(std::move(rest));
  return folded;
}

// Moments of a clock are no durations.
bool IsDuration(std::string_view column) {
  return column.ends_with("_ns") && column != "begin_ns" && column != "end_ns";
}

}  // namespace

Table ForPeople(const Table& given, bool folds) {
  const Table table = folds ? Folded(given) : given;
  std::vector<std::string> columns = table.columns();
  std::vector<char> units(columns.size(), 0);
  for (size_t i = 0; i < columns.size(); ++i) {
    if (IsDuration(columns[i])) {
      units[i] = 't';
      columns[i].resize(columns[i].size() - 3);
    } else if (columns[i] == "bytes" || columns[i].ends_with("_bytes")) {
      units[i] = 'b';
    }
  }
  Table result(std::move(columns));
  for (std::vector<Cell> row : table.rows()) {
    for (size_t i = 0; i < row.size(); ++i) {
      if (units[i] == 0 || !std::holds_alternative<int64_t>(row[i])) continue;
      const int64_t number = IntegerOf(row[i]);
      row[i] = units[i] == 't' ? HumanNs(static_cast<double>(number)) : HumanBytes(number);
    }
    result.Add(std::move(row));
  }
  result.KeepNames();
  return result;
}

Table QueryTable(const storage::Reader& reader, std::string_view sql, int64_t limit) {
  Table table({});
  storage::RunQuery(
      reader, sql,
      [&table](const std::vector<std::string>& columns) {
        table = Table(columns);
        table.KeepNames();
      },
      [&table, limit](std::vector<Cell>& row) {
        table.Add(std::move(row));
        return static_cast<int64_t>(table.rows().size()) != limit;
      });
  return table;
}

}  // namespace acltape::cli
