// Operators that exchange data with the other ranks of a group which they take by name, such as
// aclnnMatmulAllReduce: meetings of ranks like collectives of HCCL.
#pragma once

#include <vector>

#include "analyzer/ranks/collectives.h"

namespace acltape::analyzer::ranks {

// Those whose group is a communicator that the trace knows; the first one, where an operator takes
// two. In order of their calls. They have no counts: what is exchanged follows from their tensors.
std::vector<Collective> LoadFusedOperators(const storage::Reader& trace);

}  // namespace acltape::analyzer::ranks
