#include "analyzer/calls/record_more.h"

#include "meaning/dialects.h"
#include "meaning/options.h"
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
      "SELECT dialect FROM op WHERE EXISTS (SELECT 1 FROM buffer_row WHERE ifnull(flags, 0) >> 8 > "
      "0)");
  bool lacks = false;
  while (row.Next()) {
    if (meaning::IsAclDialect(row.Text(0))) return false;
    lacks = true;
  }
  return lacks;
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
