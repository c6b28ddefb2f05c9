// Values that ranks keep in common, such as parameters and states of an optimizer (rule RANK-08).
//
// Nobody says in a trace what a replica is. A tensor counts as one when its storage lives to the
// end, the same operator changes it on each rank, and what it left was equal there at least once
// (and not all zeros, which is equal by chance). The collectives are the clock by which the values
// of ranks are compared: the last value before the n-th collective of the largest communicator.
#pragma once

#include <cstdint>
#include <vector>

#include "analyzer/ranks/lines.h"
#include "analyzer/ranks/meetings.h"
#include "analyzer/ranks/rules.h"

namespace acltape::analyzer::ranks {

struct ReplicaReport {
  std::vector<RankFinding> findings;
  int64_t tensors = 0;      // tensors that are written again and again on each rank
  int64_t replicas = 0;     // those that were equal at least once
  int64_t unpaired = 0;     // those that have no counterpart on another rank
  bool has_values = false;  // the trace has values of what operators left
};

ReplicaReport FindReplicas(const storage::Reader& trace, const Communication& all,
                           const std::vector<Communicator>& communicators, Lines& lines);

}  // namespace acltape::analyzer::ranks
