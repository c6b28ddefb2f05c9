#include "storage/schema.h"

#include <fmt/format.h>

#include "generated/meaning/interface_numbers.h"
#include "generated/storage/acl_barriers.h"
#include "meaning/torch_operators.h"
#include "storage/tables.h"

namespace acltape::storage {
namespace {

constexpr char kIndexesOfResults[] = R"sql(
CREATE INDEX step_by_first_call ON step(first_call);
CREATE UNIQUE INDEX finding_once ON finding(rule, call_id, message);
)sql";

constexpr char kIndexes[] = R"sql(
CREATE INDEX IF NOT EXISTS snapshot_by_call ON snapshot(call_id);
CREATE INDEX IF NOT EXISTS scope_range_by_scope ON scope_range(scope_id);
)sql";

// Leads from a leaf of PyTorch to the calls that it launched on a device. Only calls with a parent
// have an entry.
constexpr std::string_view kIndexOfParents =
    "CREATE INDEX call_by_parent ON call_row(parent_id) WHERE parent_id IS NOT NULL";
constexpr std::string_view kPartialIndexes[] = {kIndexOfParents};

// Adds the interface functions and the operators of PyTorch that end a captured region, from their
// tables. Operators with masks are told by their arguments.
void AddBarrierRules(Database& database) {
  RowInsert<tables::kBarrierRule> add(database);
  for (const AclBarrier& row : kAclBarriers) {
    add.Set<"op_name">(row.name);
    add.Set<"code">(row.code);
    add.Set<"reason">(row.reason);
    add.Run();
  }
  for (const meaning::TorchOperator& row : meaning::kTorchOperators) {
    if (row.barrier == meaning::Barrier::kNone || row.barrier == meaning::Barrier::kMask) continue;
    const std::string name =
        row.overload.empty() ? std::string(row.name) : fmt::format("{}.{}", row.name, row.overload);
    add.Set<"op_name">(name);
    if (row.barrier == meaning::Barrier::kExchange) {
      add.SetNull<"code">();
    } else {
      add.Set<"code">(int64_t{meaning::kAclErrorRtStreamCaptured});
    }
    add.Set<"reason">(row.reason);
    add.Run();
  }
}

}  // namespace

void CreateSchema(Database& database) {
  database.Execute("BEGIN IMMEDIATE");
  for (const StoredTable* table : tables::kRecorded) database.Execute(CreateText(*table).c_str());
  for (const StoredTable* table : tables::kResults) database.Execute(CreateText(*table).c_str());
  for (const StoredTable* table : tables::kTotals) database.Execute(CreateText(*table).c_str());
  database.Execute(kIndexesOfResults);
  database.Execute(CreateText(tables::kBarrierRule).c_str());
  AddBarrierRules(database);
  CreateViews(database);
  database.Execute(fmt::format("PRAGMA application_id={}; PRAGMA user_version={};", kApplicationId,
                               kSchemaVersion)
                       .c_str());
  database.Execute("COMMIT");
}

void CreateWitnessTable(Database& database) {
  database.Execute(CreateText(tables::kWitness).c_str());
}

bool HasPayloadIndex(Database& database) {
  Statement known(database, "SELECT 1 FROM pragma_index_list('payload', 'main') WHERE \"unique\"");
  return known.Next();
}

void IndexPayloads(Database& database) {
  if (HasPayloadIndex(database)) return;
  database.Execute("CREATE UNIQUE INDEX main.payload_once ON payload(digest, piece)");
}

void CreateIndexes(Database& database) {
  IndexPayloads(database);
  database.Execute(kIndexes);
  Statement places(database, "SELECT 1 FROM stack LIMIT 1");
  Statement known(database, "SELECT 1 FROM sqlite_master WHERE name = 'call_by_parent'");
  if (places.Next() && !known.Next()) database.Execute(std::string(kIndexOfParents).c_str());
}

std::span<const std::string_view> IndexTexts() { return kPartialIndexes; }

}  // namespace acltape::storage
