// Makes assignments to a given number of streams: the candidates from which plan_streams.h chooses.
#pragma once

#include "analyzer/streams/dag.h"
#include "analyzer/streams/schedule.h"

namespace acltape::analyzer::streams {

enum class IssueOrder : uint8_t {
  kCriticalPath,  // the node with the longest way to the end first
  kNumber         // as the program issued them
};

// Puts each node, in order, on the stream on which it starts first. Among streams with equal starts
// it prefers one that saves a wait.
StreamAssignment ListSchedule(const Dag& dag, int32_t streams, IssueOrder order,
                              const StreamCosts& costs);

// Merges streams of `assignment` until `streams` are left. Each time it merges the two streams that
// lose least: the time for which their nodes would run side by side if only the edges held them up,
// less the waits that the merge saves.
StreamAssignment MergeStreams(const Dag& dag, StreamAssignment assignment, int32_t streams,
                              const StreamCosts& costs);

// Looks for better assignments within `trials` simulations. It moves nodes of the critical path to
// other streams and exchanges them with nodes that run there at the same time. It accepts a change
// when the makespan falls by more than the share `noise`.
StreamAssignment ImproveSchedule(const Dag& dag, StreamAssignment assignment, int trials,
                                 double noise, const StreamCosts& costs);

// Merges waits from one stream to another into one wait. It does so where the earliest waiter
// starts after the last of the recorded nodes has ended. The makespan never grows.
StreamAssignment MergeWaits(const Dag& dag, StreamAssignment assignment, const StreamCosts& costs);

}  // namespace acltape::analyzer::streams
