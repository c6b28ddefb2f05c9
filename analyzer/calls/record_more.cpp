#include "analyzer/calls/record_more.h"

#include "meaning/options.h"
#include "meaning/recorded_values.h"
#include "storage/database.h"

namespace acltape::analyzer {

bool LacksResultsOfDevice(const storage::Reader& trace) {
  storage::Statement row(
      trace.database(),
      "SELECT EXISTS (SELECT 1 FROM buffer_row WHERE ifnull(flags, 0) >> 8 > 0) AND NOT EXISTS "
      "(SELECT 1 FROM op JOIN signature USING (op_id) WHERE dialect = 'aclnn')");
  return row.Next() && row.Integer(0) != 0;
}

std::string HowToRecordMore(const storage::Reader& trace) {
  if (trace.Meta("payload") != "all") return "record with @payload all"_cli;
  if (LacksResultsOfDevice(trace)) return "record with @level aten,acl @payload all"_cli;
  return "see the ledger of `acltape info` for what the recording lacks";
}

}  // namespace acltape::analyzer
