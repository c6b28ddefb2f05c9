// The joint graph of one training step is its forward and backward pass as one graph: what the
// forward calls write, and what the backward calls read of it (RAW hazards from forward writers to
// backward readers, analyzer/graph/hazards.h).
//
// A value is what one call wrote into one buffer, or the bytes of a buffer that were there before
// the step. It takes no extra bytes if the program holds it in any case: its buffer was there
// before the step, outlives backward, and forward does not overwrite it. A value that forward
// overwrites in place would have to be copied, so it costs its bytes.
//
// These calls are never recomputed: random operators and others whose results come from a
// recording, calls that write into an argument, and host reads. Operators that keep the cube unit
// busy are not either, unless asked for (analyzer/prediction/resource.h).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "analyzer/calls/work.h"
#include "analyzer/joint/partition.h"

namespace acltape::analyzer::joint {

// The reason why a call is not recomputed. kNone, with an empty name, means that it can be.
enum class RecomputeBar : uint8_t { kNone, kRandom, kInPlace, kCube, kHostRead };
std::string_view RecomputeBarName(RecomputeBar bar);

// The place of a graph's value in the trace.
struct JointPlace {
  int64_t buffer = 0;
  const storage::Layout* layout = nullptr;  // layout of the tensor written, or else read first
  int64_t first_reader = -1;                // backward call, index in Work::calls; -1: none
};

struct JointStep {
  JointGraph graph;
  std::vector<uint32_t> calls;     // by graph call: index in Work::calls
  std::vector<RecomputeBar> bars;  // by graph call
  std::vector<JointPlace> places;  // by graph value
  size_t backward_calls = 0;       // number of active calls
  // Pairs of a forward and a backward call that share a value.
  size_t links = 0;
  double forward_ns = 0;  // time of all active calls
  double backward_ns = 0;
};

// True when the calls [first, end) hold an active call of the backward phase.
bool HasBackward(const Work& work, size_t first, size_t end);

// Builds the graph of one step, the calls [first, end). Calls of the optimizer are left out.
JointStep BuildJointStep(const Work& work, size_t first, size_t end, bool recompute_cube);

}  // namespace acltape::analyzer::joint
