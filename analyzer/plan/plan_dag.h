// A region of a plan as a stream planner and a race checker see it: nodes are the region's active
// calls (kernels, sources, host reads) in recorded order.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "analyzer/plan/plan.h"
#include "analyzer/streams/dag.h"
#include "analyzer/work/work.h"

namespace acltape::analyzer {

// Indices in Work::calls of the active calls with ids from first_call to last_call.
std::vector<size_t> ActiveCalls(const Work& work, int64_t first_call, int64_t last_call);

// The byte ranges that each of the calls touches.
std::vector<std::vector<ByteAccess>> AccessesOf(const Work& work, std::span<const size_t> calls);

// The edges among calls that touch the same bytes, each pair once; `calls` are active and in order.
std::vector<DagEdge> EdgesOf(const Work& work, std::span<const size_t> calls);

// The placements of a captured region as node numbers; -1 in stream_of for calls without one.
// Placements and waits of calls that are none of `calls` are left out.
StreamAssignment AssignmentOf(const PlanRegion& region, const Work& work,
                              std::span<const size_t> calls);

// The opposite: fills placements (with operator names) and waits of a region.
void SetAssignment(const StreamAssignment& assignment, const Work& work,
                   std::span<const size_t> calls, PlanRegion& region);

// Which bytes a source (random numbers) fills that an earlier call of the step has touched: its
// recorded values go up between two regions, so that one must begin at it. By place in `calls`.
std::vector<bool> LateSources(const Work& work, std::span<const size_t> calls);

}  // namespace acltape::analyzer
