#include "page/rows.h"

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

std::string TextOf(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace acltape::page
