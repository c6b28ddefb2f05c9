// The joint graph of one training step: what its forward calls write, and what its backward calls
// read of it (RAW hazards from forward writers to backward readers, analyzer/graph/hazards.h).
//
// A value is what one call wrote into one buffer, or the bytes of a buffer that were there before
// the step. Keeping it takes no bytes when the program holds it in any case: its buffer was there
// before the step, outlives backward, and forward does not overwrite it. A value that forward
// overwrites in place would have to be copied, and costs its bytes.
//
// Never recomputed: random operators and others whose results come from a recording, calls that
// write into an argument, host reads, and, unless asked for, operators that keep the cube unit busy
// (analyzer/prediction/resource.h).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "analyzer/joint/partition.h"
#include "analyzer/work/work.h"

namespace acltape::analyzer {

// Why a call is not recomputed; "" when it can be.
enum class RecomputeBar : uint8_t { kNone, kRandom, kInPlace, kCube, kHostRead };
std::string_view RecomputeBarName(RecomputeBar bar);

// Where a value of the graph lies in the trace.
struct JointPlace {
  int64_t buffer = 0;
  const storage::Layout* layout = nullptr;  // of the tensor written, or read first
  int64_t first_reader = -1;                // backward call, index in Work::calls; -1: none
};

struct JointStep {
  JointGraph graph;
  std::vector<uint32_t> calls;     // graph call to index in Work::calls
  std::vector<RecomputeBar> bars;  // by graph call
  std::vector<JointPlace> places;  // by graph value
  size_t backward_calls = 0;       // active ones
  size_t links = 0;                // pairs of a forward and a backward call of one value
  double forward_ns = 0;           // of all active calls
  double backward_ns = 0;
};

// True when the calls [first, end) hold an active call of the backward phase.
bool HasBackward(const Work& work, size_t first, size_t end);

// Of calls [first, end), one step. Calls of the optimizer are left out.
JointStep BuildJointStep(const Work& work, size_t first, size_t end, bool recompute_cube);

}  // namespace acltape::analyzer
