// Where streams have to wait for each other so that every edge of a Dag holds: the fewest places,
// and the fewest records and events for them.
#pragma once

#include "analyzer/streams/dag.h"

namespace acltape::analyzer {

// Sets `waits` and `events` of an assignment whose `streams`, `stream_of` and `order` are set.
//
// The waits are the transitive reduction of the Dag's edges and the streams' own order, less that
// order. No smaller set keeps every edge without ordering more nodes than the edges and the streams
// do. A node that several wait for records one event; an event is used again behind a node that all
// its waiters are ordered before. Vector clocks in order of issue: (nodes + edges) * streams
// operations.
//
// Precondition: `order` holds each node once and `from` before `to` of every edge.
void PlaceWaits(const Dag& dag, StreamAssignment& assignment);

// The number of nodes that record an event.
int32_t CountRecords(const StreamAssignment& assignment);

}  // namespace acltape::analyzer
