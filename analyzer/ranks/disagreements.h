// Ranks whose collectives do not fit each other: what would hang or give wrong results.
#pragma once

#include <vector>

#include "analyzer/ranks/lines.h"
#include "analyzer/ranks/meetings.h"
#include "analyzer/ranks/rules.h"

namespace acltape::analyzer::ranks {

// Rules RANK-01 to RANK-06, and RANK-11. Of equal findings from the same lines the first one is
// given.
std::vector<RankFinding> FindDisagreements(const Communication& all,
                                           const std::vector<Communicator>& communicators,
                                           Lines& lines);

}  // namespace acltape::analyzer::ranks
