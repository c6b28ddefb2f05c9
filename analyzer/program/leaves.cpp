#include "analyzer/program/leaves.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "analyzer/calls/acl_calls.h"
#include "analyzer/calls/leaf_kind.h"
#include "analyzer/program/acl_leaves.h"
#include "analyzer/steps/steps.h"
#include "storage/database.h"

namespace acltape::analyzer {

Work LoadLeaves(const storage::Reader& trace, storage::Results* results) {
  Work work = LoadWork(trace);
  AssignSteps(work, results);
  return work.dialect == Dialect::kAcl ? LoadAclLeaves(work).work : std::move(work);
}

bool HasStepsOfLeaves(const storage::Reader& trace, Level level) {
  // Most steps hold a leaf among their first calls.
  storage::Statement calls(trace.database(),
                           "SELECT o.name, o.dialect FROM call c JOIN op o USING (op_id) "
                           "WHERE c.call_id BETWEEN ? AND ?");
  const std::vector<storage::Step> steps = StepsOf(trace, level);
  return std::any_of(steps.begin(), steps.end(), [&](const storage::Step& step) {
    calls.Reset();
    calls.Bind(1, step.first_call);
    calls.Bind(2, step.last_call);
    while (calls.Next()) {
      if (level == Level::kAten) {
        if (IsLeafDialect(calls.Text(1))) return true;
        continue;
      }
      const AclCallKind kind = FindAclFunction(calls.Text(0)).kind;
      if (calls.Text(1) == "aclnn" || ChangesMemory(kind) || IsExecution(kind)) return true;
    }
    return false;
  });
}

}  // namespace acltape::analyzer
