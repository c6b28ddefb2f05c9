// All that is known of the ranks of a program together: `acltape ranks` and the page show it.
//
//   const Comparison ranks(reader);
//   for (const RankFinding& one : ranks.findings) ...
#pragma once

#include <vector>

#include "analyzer/ranks/lateness.h"
#include "analyzer/ranks/lines.h"
#include "analyzer/ranks/meetings.h"
#include "analyzer/ranks/overlap.h"
#include "analyzer/ranks/received_values.h"
#include "analyzer/ranks/replicas.h"
#include "analyzer/ranks/rules.h"

namespace acltape::analyzer::ranks {

// The members refer to each other, so that it stays where it is made. The trace must outlive it.
struct Comparison {
  explicit Comparison(const storage::Reader& trace);
  Comparison(const Comparison&) = delete;
  Comparison& operator=(const Comparison&) = delete;

  const Communication all;
  const std::vector<Communicator> communicators;
  const std::vector<Wait> waits;
  Lines lines;
  ReceivedReport received;            // without findings: they are among those below
  ReplicaReport replicas;             // without findings: they are among those below
  std::vector<RankFinding> findings;  // all; where parts were recorded, those of single ranks
  Overlap overlap;
};

}  // namespace acltape::analyzer::ranks
