// Cuts a step into regions that can become captured graphs: the longest runs of leaves without a
// barrier. Barriers run eagerly between the graphs.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "analyzer/calls/work.h"
#include "analyzer/program/calls_inside.h"

namespace acltape::analyzer {

// Leaves [first, end) by their place in the given list.
struct Region {
  size_t first = 0;
  size_t end = 0;
  bool captured = false;
  std::string reason;  // why it is not captured; empty for captured regions
};

// The leaves of a work that cannot be part of a captured graph, and why. Plans, lint, gates and
// replays ask here. It follows from the tables of meaning/torch_operators.h and from arguments and
// buffers.
//   host read             the capturing stream cannot be waited for (107027)
//   data-dependent shape  the host reads a size before it goes on (107027)
//   mask                  it takes as many elements as a mask selects (107027)
//   copy between devices  the host waits for it (107030)
//   collective            other processes take part; on memory of the host, the host waits for them
//   collective of devices other processes take part, and a replay of leaves cannot make it again; a
//                         program's own capture holds it
//   opaque kernel         torch.compile generated it, and nobody knows what it computes
//   unknown operator      an extension has it, and nothing tells what it does
// An operator of an extension is no barrier if a graph can repeat the calls of the device that were
// recorded inside of it (calls_inside.h). Else the reason says what those calls do.
class Barriers {
 public:
  // The work must outlive the object.
  explicit Barriers(const Work& work) : work_(work), unknown_(work) {}

  // Empty if the leaf can be part of a graph.
  std::string ReasonOf(size_t call);

 private:
  std::string ReasonOfUnknown(size_t call);

  const Work& work_;
  UnknownOperators unknown_;
};
inline constexpr char kCopyBarrier[] = "copy between devices";
inline constexpr char kUnknownBarrier[] = "unknown operator";
inline constexpr char kWaitBarrier[] = "host wait in an unknown operator";
// These do not end a capture. A graph would do something else than the operator.
inline constexpr char kDeviceCollectiveBarrier[] = "collective of devices";
inline constexpr char kOtherWorkBarrier[] = "other work than operators in an unknown operator";
inline constexpr char kHiddenBarrier[] = "inputs of an unknown operator that are no arguments";
inline constexpr char kChangingBarrier[] = "changing calls in an unknown operator";
inline constexpr char kUntoldBarrier[] = "results of an unknown operator that nothing tells";

// The regions of a list of leaves. `barrier` gives the reason for the leaf at a place of the list;
// empty means none. `cut_before` returns true if a new region must start at the place.
std::vector<Region> FindRegions(size_t leaf_count,
                                const std::function<std::string(size_t)>& barrier,
                                const std::function<bool(size_t)>& cut_before);

}  // namespace acltape::analyzer
