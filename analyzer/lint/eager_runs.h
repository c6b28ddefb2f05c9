// Where the launches of a capture that the program made also ran eagerly: in a warm-up, or in steps
// that the graph does not serve. What differs between these runs and the capture is what the graph
// has baked.
#pragma once

#include "analyzer/graph/variation.h"
#include "analyzer/lint/places.h"
#include "analyzer/lint/stretch.h"
#include "analyzer/work/work.h"

namespace acltape::analyzer {

// The launches of operators in the capture, and each eager run of the same operators in the same
// order, from the same lines of the program where these are known. The capture is the first run; it
// is the only one when the program never ran them eagerly.
StepFamily FindEagerRuns(const Work& work, const Places& places, const Stretch& capture);

}  // namespace acltape::analyzer
