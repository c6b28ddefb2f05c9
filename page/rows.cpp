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

nlohmann::json ReadJson(const std::string& text) {
  constexpr int kMostLevels = 100;
  bool deep = false;
  nlohmann::json read = nlohmann::json::parse(
      text,
      [&](int depth, nlohmann::json::parse_event_t /*event*/, nlohmann::json& /*parsed*/) {
        deep = deep || depth > kMostLevels;
        return !deep;
      },
      /*allow_exceptions=*/false);
  return deep ? nlohmann::json(nlohmann::json::value_t::discarded) : read;
}

std::string TextOf(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace acltape::page
