// Finds where streams have to wait for each other so that every edge of a Dag holds, with the
// fewest waits, records and events.
#pragma once

#include "analyzer/streams/dag.h"

namespace acltape::analyzer::streams {

// Sets `waits` and `events` of an assignment whose `streams`, `stream_of` and `order` are set.
//
// The waits are the transitive reduction of the Dag's edges and the streams' own order, without
// that order. No smaller set keeps every edge without ordering further nodes. If several nodes wait
// for one node, it records one event for all of them. An event is used again after a node that all
// its waiters are ordered before. Vector clocks are computed in order of issue, with (nodes +
// edges) * streams operations.
//
// Precondition: `order` holds each node once, and `from` comes before `to` for every edge.
void PlaceWaits(const Dag& dag, StreamAssignment& assignment);

// The number of nodes that record an event.
int32_t CountRecords(const StreamAssignment& assignment);

}  // namespace acltape::analyzer::streams
