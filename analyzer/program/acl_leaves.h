// The device work of an ACL program as leaves, in the order of analyzer/acl/acl_order.h.
//
//   kernel      an operator, a copy on the device, a fill, a value write
//   source      a copy from the host: its bytes come from the recording
//   host read   a copy to the host
//
// A call keeps its id the first time that it runs. A call in a graph runs once for each execution.
// Each further time its id grows by kExecutionIds, so that every leaf has its own id.
#pragma once

#include <cstdint>
#include <vector>

#include "analyzer/calls/work.h"
#include "analyzer/program/program.h"

namespace acltape::analyzer {

inline constexpr int64_t kExecutionIds = int64_t{1} << 32;
// The id of the recorded call of a leaf.
constexpr int64_t RecordedCall(int64_t call_id) { return call_id % kExecutionIds; }

// Loads the program of a work of ACL calls with steps. Its own work has one entry for each leaf.
// Throws Error kTrace, one sentence, when the trace has no device work or its work has no order
// (OrderOfWork). Program::lacks names contents that a replay would lack.
Program LoadAclLeaves(const Work& calls);

// The id of the call with which the host put the work of a leaf on its stream. For work in a graph
// this is the execution of the graph. `leaf` must be one of an ACL program.
int64_t IssuedBy(const Leaf& leaf);

// The layout of an argument of a copy with rows. `range` holds all the rows.
storage::Layout RowsOf(const Leaf& leaf, const storage::Argument& argument, storage::Layout range);

}  // namespace acltape::analyzer
