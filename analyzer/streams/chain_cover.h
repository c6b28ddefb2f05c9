// As many streams as nodes can run at the same time, and as few waits as that allows.
#pragma once

#include "analyzer/streams/dag.h"
#include "analyzer/streams/partial_order.h"

namespace acltape::analyzer {

// Streams are the chains of a minimum chain cover of the closure: their number is the width
// (Dilworth 1950). They order nothing that the edges do not, so that the waits are the edges of the
// transitive reduction that are no step of a chain; among the minimum covers one is taken that has
// the most such edges as steps, which makes the waits fewest. Nodes are issued by number.
StreamAssignment CoverByChains(const Dag& dag, const PartialOrder& order);

// What Nimble (Kwon et al., NeurIPS 2020) does with the Dag, to compare with.
struct NimbleAssignment {
  // Its streams: maximum matching on the transitive reduction, then chains that never overlap are
  // glued by a second matching. Its waits are the fewest for these streams.
  StreamAssignment assignment;
  // What its runtime issues: a wait for every original parent on another stream, a record behind
  // every node.
  int32_t runtime_waits = 0;
  int32_t runtime_records = 0;
};
NimbleAssignment AssignLikeNimble(const Dag& dag, const PartialOrder& order);

}  // namespace acltape::analyzer
