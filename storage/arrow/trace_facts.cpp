#include "storage/arrow/trace_facts.h"

#include <cstdint>
#include <nlohmann/json.hpp>

#include "storage/database.h"
#include "storage/schema.h"
#include "storage/split.h"
#include "storage/utf8.h"

namespace acltape::storage::arrow {

std::string TraceFacts(const Reader& trace) {
  Database& database = trace.database();
  nlohmann::json facts;
  facts["schema_version"] = database.Integer("PRAGMA user_version");
  facts["known_version"] = kSchemaVersion;
  facts["state"] = trace.State();
  facts["meta"] = nlohmann::json::object();
  for (const auto& [key, value] : trace.AllMeta()) facts["meta"][AsUtf8(key)] = AsUtf8(value);
  facts["tables"] = nlohmann::json::array();
  Statement names(database,
                  "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') UNION "
                  "SELECT name FROM sqlite_temp_master ORDER BY name");
  while (names.Next()) facts["tables"].push_back(AsUtf8(names.Text(0)));
  facts["ranks"] = nlohmann::json::array();
  for (const RankProcesses& rank : ProcessesByRank(trace)) {
    facts["ranks"].push_back({{"rank", rank.rank}, {"processes", rank.processes}});
  }
  const int64_t ranks = database.Integer("SELECT max(ranks) FROM communicator");
  facts["world_size"] = ranks > 0 ? nlohmann::json(ranks) : nlohmann::json();
  return facts.dump();
}

}  // namespace acltape::storage::arrow
