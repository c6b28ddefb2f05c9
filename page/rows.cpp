#include "page/rows.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "storage/query.h"

namespace acltape::page {
namespace {

nlohmann::json JsonOf(const storage::Cell& cell) {
  if (const auto* integer = std::get_if<int64_t>(&cell)) return *integer;
  if (const auto* real = std::get_if<double>(&cell)) return *real;
  if (const auto* text = std::get_if<std::string>(&cell)) return *text;
  return nullptr;
}

}  // namespace

nlohmann::json RowsOf(const storage::Reader& trace, std::string_view sql, int64_t limit) {
  const storage::Table table = storage::RunQuery(trace, sql, limit);
  nlohmann::json rows = nlohmann::json::array();
  for (const std::vector<storage::Cell>& cells : table.rows) {
    nlohmann::json row = nlohmann::json::object();
    for (size_t i = 0; i < cells.size(); ++i) row[table.columns[i]] = JsonOf(cells[i]);
    rows.push_back(std::move(row));
  }
  return rows;
}

bool HasColumns(const storage::Reader& trace, std::string_view table, std::string_view columns) {
  for (size_t at = 0; at <= columns.size();) {
    const size_t end = std::min(columns.find(',', at), columns.size());
    const storage::Table found = storage::RunQuery(
        trace, fmt::format("SELECT 1 FROM pragma_table_info('{}') WHERE name = '{}'", table,
                           columns.substr(at, end - at)));
    if (found.rows.empty()) return false;
    at = end + 1;
  }
  return true;
}

std::string TextOf(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace acltape::page
