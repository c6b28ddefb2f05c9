// Finds eager runs of the launches of a capture that the program made: in a warm-up, or in steps
// that the graph does not serve. Values that differ between these runs and the capture are baked
// into the graph.
#pragma once

#include "analyzer/calls/work.h"
#include "analyzer/graph/variation.h"
#include "analyzer/lint/places.h"
#include "analyzer/lint/stretch.h"

namespace acltape::analyzer::lint {

// Finds the launches of operators in the capture, and each eager run of the same operators in the
// same order. They must come from the same lines of the program if these are known. The capture is
// the first run. It is the only one if the program never ran the launches eagerly.
graph::StepFamily FindEagerRuns(const Work& work, const Places& places, const Stretch& capture);

}  // namespace acltape::analyzer::lint
