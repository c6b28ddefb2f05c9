#include "analyzer/lint/calls_inside.h"

#include "analyzer/calls/acl_calls.h"
#include "meaning/dialects.h"

namespace acltape::analyzer::lint {

CallsInside FindCallsInside(const storage::Reader& trace, int64_t leaf) {
  CallsInside inside = CallsInside::kNotRecorded;
  for (const storage::Call& call : trace.CallsInside(leaf)) {
    const storage::Op& op = trace.GetOp(call.op_id);
    if (!meaning::IsAclDialect(op.dialect)) continue;
    if (WaitsOnHost(FindAclFunction(op.name).kind)) return CallsInside::kWait;
    inside = CallsInside::kNoWait;
  }
  return inside;
}

}  // namespace acltape::analyzer::lint
