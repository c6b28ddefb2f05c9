#include "cli/tables/lines_of_both.h"

#include <algorithm>

#include "cli/tables/where.h"

namespace acltape::cli {

Table WithLinesOfBoth(const Table& table, const analyzer::SourceLines& of_a,
                      const analyzer::SourceLines& of_b) {
  if (!of_a.any()) return WithLines(table, "b_call", of_b);
  const Table first = WithLines(table, "a_call", of_a);
  if (!of_b.any()) return first;
  const Table second = WithLines(table, "b_call", of_b);
  const auto place = [](const Table& with_lines) {
    const auto& columns = with_lines.columns();
    return std::find(columns.begin(), columns.end(), "where") - columns.begin();
  };
  Table result(first.columns());
  for (size_t row = 0; row < first.rows().size(); ++row) {
    std::vector<Cell> cells = first.rows()[row];
    Cell& line = cells[place(first)];
    if (std::holds_alternative<std::monostate>(line)) line = second.rows()[row][place(second)];
    result.Add(std::move(cells));
  }
  return result;
}

}  // namespace acltape::cli
