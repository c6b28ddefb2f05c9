// Assigns as many streams as there are nodes that can run at the same time, with the fewest waits.
#pragma once

#include "analyzer/streams/dag.h"
#include "analyzer/streams/partial_order.h"

namespace acltape::analyzer::streams {

// The streams are the chains of a minimum chain cover of the closure, so that their number is the
// width (Dilworth 1950). Chains order nothing that the edges do not. The waits are therefore those
// edges of the transitive reduction that no chain contains. Of all minimum covers, this one
// contains the most such edges, so that the waits are the fewest. Nodes are issued by number.
StreamAssignment CoverByChains(const Dag& dag, const PartialOrder& order);

// The assignment that Nimble (Kwon et al., NeurIPS 2020) makes for the Dag, for comparison.
struct NimbleAssignment {
  // Its streams come from a maximum matching on the transitive reduction. A second matching then
  // glues chains that never overlap. Its waits are the fewest for these streams.
  StreamAssignment assignment;
  // The calls that its runtime issues: a wait for every original parent on another stream, and a
  // record after every node.
  int32_t runtime_waits = 0;
  int32_t runtime_records = 0;
};
NimbleAssignment AssignLikeNimble(const Dag& dag, const PartialOrder& order);

}  // namespace acltape::analyzer::streams
