// Collectives of one communicator on two streams of a rank that nothing orders.
#pragma once

#include <vector>

#include "analyzer/ranks/lines.h"
#include "analyzer/ranks/meetings.h"
#include "analyzer/ranks/rules.h"

namespace acltape::analyzer::ranks {

// RANK-10, of eager work with executions of graphs between it, and inside of each graph. One
// finding for each rank, communicator and pair of lines. A rank whose communicators have one stream
// each is not looked at further.
std::vector<RankFinding> FindUnorderedStreams(const storage::Reader& trace,
                                              const Communication& all, Lines& lines);

}  // namespace acltape::analyzer::ranks
