// A region of a plan as a stream planner and a race checker see it. Its nodes are the active calls
// of the region (kernels, sources, host reads) in recorded order.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analyzer/calls/work.h"
#include "analyzer/plan/plan.h"
#include "analyzer/streams/dag.h"

namespace acltape::analyzer::plan {

// Indices in Work::calls of the active calls with ids from first_call to last_call.
std::vector<size_t> ActiveCalls(const Work& work, int64_t first_call, int64_t last_call);

// The byte ranges that each call touches.
std::vector<std::vector<ByteAccess>> AccessesOf(const Work& work, std::span<const size_t> calls);

// The edges between calls that touch the same bytes, each pair once. `calls` are active and in
// order.
std::vector<streams::DagEdge> EdgesOf(const Work& work, std::span<const size_t> calls);

// Turns the placements of a captured region into node numbers. A call without a placement has -1 in
// stream_of. Placements and waits of calls that are not in `calls` are left out.
streams::StreamAssignment AssignmentOf(const PlanRegion& region, const Work& work,
                                       std::span<const size_t> calls);

// The opposite of AssignmentOf: fills the placements (with operator names) and waits of a region.
void SetAssignment(const streams::StreamAssignment& assignment, const Work& work,
                   std::span<const size_t> calls, PlanRegion& region);

// Says for each place in `calls` whether a source (random numbers) fills bytes that an earlier call
// of the step has touched. Its recorded values are uploaded between two regions, so a region must
// begin at it.
std::vector<bool> LateSources(const Work& work, std::span<const size_t> calls);

}  // namespace acltape::analyzer::plan
