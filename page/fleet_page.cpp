#include "page/fleet_page.h"

#include <nlohmann/json.hpp>
#include <string>

#include "page/rows.h"

namespace acltape::page {

void FleetPage::Take(const nlohmann::json& said) {
  if (said.contains("json")) {
    document_.AddJson(said["json"].get<std::string>(), TextOf(said["value"]));
  }
  if (said.contains("column")) {
    Column column(Column::Coding::kDifference);
    for (const nlohmann::json& value : said["values"]) column.Add(value.get<int64_t>());
    document_.AddColumn(said["column"].get<std::string>(), column);
  }
}

}  // namespace acltape::page
