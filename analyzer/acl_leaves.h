// The device work of an ACL program as leaves, in the order of analyzer/acl_order.h.
//
//   kernel      an operator, a copy on the device, a fill, a value write
//   source      a copy from the host: its bytes come from the recording
//   host read   a copy to the host
//
// A call keeps its id the first time that it runs. A call in a graph runs once for each execution.
// Each further time its id grows by kExecutionIds, so that every leaf has its own id.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "analyzer/program.h"
#include "analyzer/work.h"

namespace acltape::analyzer {

inline constexpr int64_t kExecutionIds = int64_t{1} << 32;
// The id of the recorded call of a leaf.
constexpr int64_t RecordedCall(int64_t call_id) { return call_id % kExecutionIds; }

// Loads the leaves. Throws Error kTrace, one sentence, when the trace has no call of the ACL level
// or its work has no order (OrderOfWork). Program::lacks names contents that a replay would lack.
Program LoadAclLeaves(const storage::Reader& trace);

// The id of the call with which the host put the work of a leaf on its stream. For work in a graph
// this is the execution of the graph. `leaf` must be one of an ACL program.
int64_t IssuedBy(const Leaf& leaf);

// Finds the leaves of ranges of calls, each in logarithmic time.
class LeavesByCall {
 public:
  explicit LeavesByCall(const std::vector<Leaf>& leaves);
  // The places [first, second) of the leaves whose work calls [first_call, last_call] issued. Work
  // that had to wait counts at the place where it ran.
  std::pair<size_t, size_t> LeavesOf(int64_t first_call, int64_t last_call) const;

 private:
  std::vector<int64_t> latest_;  // by leaf: the latest call that issued it or a leaf before it
};

// The uses of a leaf of an ACL program.
std::vector<ArgumentUse> UsesOfAclLeaf(const storage::Op& op, LeafKind kind,
                                       const std::vector<storage::Argument>& arguments);

// The layout of an argument of a copy with rows. `range` holds all the rows.
storage::Layout RowsOf(const Leaf& leaf, const storage::Argument& argument, storage::Layout range);

// Converts a work of the ACL level, with steps, into the work of `program`, which LoadAclLeaves
// made of the same trace. It has one entry for each leaf, with the same ids, in the same order.
Work WorkOfAclLeaves(const Work& calls, const Program& program);

}  // namespace acltape::analyzer
