#include "cli/query_table.h"

#include <fmt/format.h>

#include <utility>

namespace acltape::cli {
namespace {

Cell ToCell(storage::Cell&& cell) {
  if (auto* integer = std::get_if<int64_t>(&cell)) return *integer;
  if (auto* real = std::get_if<double>(&cell)) return *real;
  if (auto* text = std::get_if<std::string>(&cell)) return std::move(*text);
  if (auto* blob = std::get_if<storage::Blob>(&cell)) {
    return fmt::format("x'{:02x}'", fmt::join(blob->bytes, ""));
  }
  return Cell();
}

}  // namespace

std::vector<Cell> ToRow(std::vector<storage::Cell> cells) {
  std::vector<Cell> row;
  row.reserve(cells.size());
  for (storage::Cell& cell : cells) row.push_back(ToCell(std::move(cell)));
  return row;
}

Table ToTable(storage::Table found) {
  Table table(std::move(found.columns));
  table.KeepNames();
  for (auto& row : found.rows) table.Add(ToRow(std::move(row)));
  return table;
}

}  // namespace acltape::cli
