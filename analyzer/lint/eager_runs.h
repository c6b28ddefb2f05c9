// Finds eager runs of the launches of a capture that the program made: in a warm-up, or in steps
// that the graph does not serve. Values that differ between these runs and the capture are baked
// into the graph.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "analyzer/calls/work.h"
#include "analyzer/graph/variation.h"
#include "analyzer/lint/places.h"
#include "analyzer/lint/stretch.h"

namespace acltape::analyzer::lint {

// Finds the launches of operators in the capture, and each eager run of the same operators in the
// same order. They must come from the same lines of the program if these are known. The capture is
// the first run. It is the only one if the program never ran the launches eagerly.
graph::StepFamily FindEagerRuns(const Work& work, const Places& places, const Stretch& capture);

// Tells which eager runs some capture of the program serves: it has the launches of the run, with
// the same arguments of the host.
class ServedRuns {
 public:
  ServedRuns(const Work& work, const Places& places, const std::vector<Stretch>& stretches);

  // Leaves out those of `runs` that a capture serves, but for the first one.
  void LeaveOut(graph::StepFamily& runs);

 private:
  using Launches = std::span<const uint32_t>;
  std::vector<std::pair<int64_t, int32_t>> LinesOf(Launches run) const;
  bool Serves(Launches capture, Launches run) const;
  bool IsServed(Launches run);

  const Work& work_;
  const Places& places_;
  using Alike = std::vector<std::vector<uint32_t>>;  // launches of captures that differ
  std::map<std::vector<std::pair<int64_t, int32_t>>, Alike> captures_;    // by operators and lines
  std::map<std::pair<const Alike*, std::vector<int32_t>>, bool> served_;  // runs by their forms
};

}  // namespace acltape::analyzer::lint
