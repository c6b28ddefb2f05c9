// Assignments to a given number of streams: the candidates from which plan_streams.h chooses.
#pragma once

#include "analyzer/streams/dag.h"
#include "analyzer/streams/schedule.h"

namespace acltape::analyzer {

enum class IssueOrder : uint8_t {
  kCriticalPath,  // the longest way to the end first
  kNumber         // as the program issued them
};

// Each node in order goes to the stream on which it starts first; of those with equal starts to one
// that saves a wait.
StreamAssignment ListSchedule(const Dag& dag, int32_t streams, IssueOrder order,
                              const StreamCosts& costs);

// The streams of `assignment` merged until `streams` are left: each time the two whose nodes would
// run at the same time for the least time if nothing but the edges held them up, less the waits
// that they then save.
StreamAssignment MergeStreams(const Dag& dag, StreamAssignment assignment, int32_t streams,
                              const StreamCosts& costs);

// Better assignments within `trials` simulations: moves nodes of the critical path to other streams
// and exchanges them with nodes that run there at the same time. A step is accepted when the
// makespan falls by more than `noise` of it.
StreamAssignment ImproveSchedule(const Dag& dag, StreamAssignment assignment, int trials,
                                 double noise, const StreamCosts& costs);

// Waits from one stream to another become one where the earliest waiter starts so late that the
// last of the recorded nodes has ended anyway; never with a longer makespan.
StreamAssignment MergeWaits(const Dag& dag, StreamAssignment assignment, const StreamCosts& costs);

}  // namespace acltape::analyzer
