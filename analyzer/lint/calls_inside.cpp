#include "analyzer/lint/calls_inside.h"

#include "analyzer/calls/acl_calls.h"
#include "storage/database.h"

namespace acltape::analyzer::lint {

CallsInside FindCallsInside(const storage::Reader& trace, int64_t leaf) {
  storage::Statement names(trace.database(),
                           "SELECT DISTINCT o.name FROM call_row c "
                           "JOIN signature s ON s.signature_id = c.signature_id "
                           "JOIN op o ON o.op_id = s.op_id "
                           "WHERE c.parent_id = ? AND o.dialect GLOB 'acl*'");
  names.Bind(1, leaf);
  CallsInside inside = CallsInside::kNotRecorded;
  while (names.Next()) {
    if (WaitsOnHost(FindAclFunction(names.Text(0)).kind)) return CallsInside::kWait;
    inside = CallsInside::kNoWait;
  }
  return inside;
}

}  // namespace acltape::analyzer::lint
