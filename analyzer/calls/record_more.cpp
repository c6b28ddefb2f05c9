#include "analyzer/calls/record_more.h"

#include "meaning/options.h"
#include "meaning/recorded_values.h"
#include "storage/database.h"

namespace acltape::analyzer {

namespace {

constexpr const char* kSeeLedger = "see the ledger of `acltape info` for what the recording lacks";
constexpr const char* kRedacted =
    "it was redacted: take the trace that it was made of, or replay with @data synthesised"_cli;

bool IsRedacted(const storage::Reader& trace) { return !trace.Meta("redacted").empty(); }

}  // namespace

bool LacksDeviceLevel(const storage::Reader& trace) {
  storage::Statement row(
      trace.database(),
      "SELECT EXISTS (SELECT 1 FROM buffer_row WHERE ifnull(flags, 0) >> 8 > 0) AND NOT EXISTS "
      "(SELECT 1 FROM op JOIN signature USING (op_id) WHERE dialect = 'aclnn')");
  return row.Next() && row.Integer(0) != 0;
}

std::string HowToRecordMore(const storage::Reader& trace) {
  if (IsRedacted(trace)) return kRedacted;
  if (LacksDeviceLevel(trace)) return "record with @level aten,acl @payload all"_cli;
  return trace.Meta("payload") != "all" ? "record with @payload all"_cli : kSeeLedger;
}

std::string HowToRecordInputs(const storage::Reader& trace) {
  if (IsRedacted(trace)) return kRedacted;
  const std::string policy = trace.Meta("payload");
  const bool kept = policy == "inputs" || policy == "all";
  if (LacksDeviceLevel(trace)) {
    return kept ? "record with @level aten,acl"_cli
                : "record with @level aten,acl, and @payload inputs or @payload all"_cli;
  }
  return kept ? kSeeLedger : "record with @payload inputs or @payload all"_cli;
}

}  // namespace acltape::analyzer
