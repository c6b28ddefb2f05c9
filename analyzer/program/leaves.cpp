#include "analyzer/program/leaves.h"

#include <utility>

#include "analyzer/program/acl_leaves.h"
#include "analyzer/steps/steps.h"

namespace acltape::analyzer {

Work LoadLeaves(const storage::Reader& trace, storage::Results* results) {
  Work work = LoadWork(trace);
  AssignSteps(work, results);
  return work.dialect == Dialect::kAcl ? LoadAclLeaves(work).work : std::move(work);
}

}  // namespace acltape::analyzer
