// Cuts a step into regions that can become captured graphs: the longest runs of leaves without a
// barrier. Barriers run eagerly between the graphs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "analyzer/program.h"
#include "analyzer/work/work.h"

namespace acltape::analyzer {

// Leaves [first, end) by their place in the given list.
struct Region {
  size_t first = 0;
  size_t end = 0;
  bool captured = false;
  std::string reason;  // why it is not captured; empty for captured regions
};

// Why a leaf cannot be part of a captured graph; empty when it can.
//   host read             the capturing stream cannot be waited for (107027)
//   data-dependent shape  the host reads a size before it goes on (107027)
std::string BarrierReason(LeafKind kind, const storage::Op& op);
inline std::string BarrierReason(const Leaf& leaf) { return BarrierReason(leaf.kind, *leaf.op); }
// The same, and what arguments and buffers tell:
//   mask                  it takes as many elements as a mask selects (107027)
//   copy between devices  the host waits for it (107030)
std::string BarrierReason(const Work& work, size_t call);

// The regions of `leaves` (indices into program.leaves). `barrier` gives the reason for the leaf at
// a place of the list, empty for none; `cut_before` says whether a new region must start there.
std::vector<Region> FindRegions(size_t leaf_count,
                                const std::function<std::string(size_t)>& barrier,
                                const std::function<bool(size_t)>& cut_before);

}  // namespace acltape::analyzer
