#include "analyzer/call_line.h"

#include "storage/query.h"

namespace acltape::analyzer {
namespace {

using storage::RunQuery;

// The line of the call, or else of the first call launched by it that has a line.
std::string OwnLine(const storage::Reader& trace, int64_t call_id) {
  const std::string id = std::to_string(call_id);
  const auto found =
      RunQuery(trace,
               std::string("SELECT ") + kLineOfFrames +
                   " FROM stack JOIN call_extra x USING (stack_id) WHERE x.call_id IN (SELECT " +
                   id + " UNION ALL SELECT call_id FROM call_row WHERE parent_id = " + id +
                   ") AND " + kHasLine + " ORDER BY x.call_id LIMIT 1",
               1);
  return found.rows.empty() ? "" : std::get<std::string>(found.rows[0].at(0));
}

// Finds the nearest node of autograd around the call, and returns the leaf whose gradient it
// computes; 0: none.
int64_t ForwardLeaf(const storage::Reader& trace, int64_t call_id) {
  if (!HoldsForwardCalls(trace)) return 0;
  const auto found = RunQuery(
      trace,
      "WITH RECURSIVE up(call_id, depth) AS (SELECT parent_id, 0 FROM call_row WHERE call_id = " +
          std::to_string(call_id) +
          " UNION ALL SELECT c.parent_id, depth + 1 FROM up JOIN call_row c USING (call_id)) "
          "SELECT x.forward_call FROM up JOIN call_extra x USING (call_id) "
          "WHERE x.forward_call IS NOT NULL ORDER BY depth LIMIT 1",
      1);
  return found.rows.empty() ? 0 : std::get<int64_t>(found.rows[0].at(0));
}

}  // namespace

bool HoldsForwardCalls(const storage::Reader& trace) {
  return !RunQuery(trace,
                   "SELECT 1 FROM pragma_table_info('call_extra') WHERE name = 'forward_call'")
              .rows.empty();
}

std::string LineOfCall(const storage::Reader& trace, int64_t call_id) {
  const std::string own = OwnLine(trace, call_id);
  if (!own.empty()) return own;
  const int64_t forward = ForwardLeaf(trace, call_id);
  return forward == 0 ? "" : OwnLine(trace, forward);
}

}  // namespace acltape::analyzer
