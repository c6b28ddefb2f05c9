// Results of collectives that all ranks receive: equal on each rank, or something wrote the memory
// of a rank meanwhile (rule RANK-07).
#pragma once

#include <cstdint>
#include <vector>

#include "analyzer/ranks/lines.h"
#include "analyzer/ranks/meetings.h"
#include "analyzer/ranks/rules.h"

namespace acltape::analyzer::ranks {

struct ReceivedReport {
  std::vector<RankFinding> findings;
  int64_t results = 0;  // results of collectives that were compared
};

// Gives the first one of equal findings from the same line.
ReceivedReport CompareReceived(const storage::Reader& trace, const Communication& all,
                               const std::vector<Communicator>& communicators, Lines& lines);

}  // namespace acltape::analyzer::ranks
