// How much of a program of the ACL level its replay call by call compared (replayer/coverage.h).
#pragma once

#include <functional>
#include <unordered_set>

#include "analyzer/acl/acl_program.h"
#include "analyzer/calls/coverage.h"

namespace acltape::replayer::acl_level {

// Counts the operators, in each execution of a graph that holds them. Copies and fills bring what
// these read. `executes` is false for an operator that the device refused. `compared` has the
// recorded results that were compared.
analyzer::Coverage CoverageOf(const analyzer::AclProgram& program,
                              const std::function<bool(const analyzer::AclCall&)>& executes,
                              const std::unordered_set<const storage::Snapshot*>& compared);

}  // namespace acltape::replayer::acl_level
