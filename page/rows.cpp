#include "page/rows.h"

#include <nlohmann/json.hpp>

#include "storage/cell.h"
#include "storage/database.h"

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
  storage::Statement found(trace.database(), sql);
  const int columns = ColumnCount(found);
  nlohmann::json rows = nlohmann::json::array();
  while ((limit == 0 || static_cast<int64_t>(rows.size()) < limit) && found.Next()) {
    nlohmann::json row = nlohmann::json::object();
    for (int i = 0; i < columns; ++i) {
      row[std::string(NameOfColumn(found, i))] = JsonOf(CellOf(found, i));
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string TextOf(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace acltape::page
