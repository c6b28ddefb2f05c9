// Removes the parts of a script on which its results do not depend.
#pragma once

#include "replayer/engine/script.h"

namespace acltape::replayer::reproducer {

// Drops uploads and copies to bytes that no operation reads, in whatever order: they are values of
// calls that are not executed. Launches, fills, events and captures stay.
void PruneScript(Script& script);

}  // namespace acltape::replayer::reproducer
