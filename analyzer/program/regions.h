// Cuts a step into regions that can become captured graphs: the longest runs of leaves without a
// barrier. Barriers run eagerly between the graphs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "analyzer/calls/work.h"

namespace acltape::analyzer {

// Leaves [first, end) by their place in the given list.
struct Region {
  size_t first = 0;
  size_t end = 0;
  bool captured = false;
  std::string reason;  // why it is not captured; empty for captured regions
};

// Says why a leaf cannot be part of a captured graph. Empty when it can. Plans, lint and replays
// use this one rule; of an unknown operator lint alone asks what was recorded inside of it
// (analyzer/lint/calls_inside.h). It follows from the tables of meaning/torch_operators.h and from
// arguments and buffers.
//   host read             the capturing stream cannot be waited for (107027)
//   data-dependent shape  the host reads a size before it goes on (107027)
//   mask                  it takes as many elements as a mask selects (107027)
//   copy between devices  the host waits for it (107030)
//   collective            other processes take part
//   opaque kernel         torch.compile generated it, and nobody knows what it computes
//   unknown operator      an extension has it, and nobody knows what it does
std::string BarrierReason(const Work& work, size_t call);
inline constexpr char kCopyBarrier[] = "copy between devices";
inline constexpr char kUnknownBarrier[] = "unknown operator";

// The regions of a list of leaves. `barrier` gives the reason for the leaf at a place of the list;
// empty means none. `cut_before` returns true if a new region must start at the place.
std::vector<Region> FindRegions(size_t leaf_count,
                                const std::function<std::string(size_t)>& barrier,
                                const std::function<bool(size_t)>& cut_before);

}  // namespace acltape::analyzer
