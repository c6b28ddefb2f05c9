// Leaves out of a script what its results do not depend on.
#pragma once

#include "replayer/script/script.h"

namespace acltape::replayer {

// Drops uploads and copies to bytes that no operation ever reads, whatever the order: the values of
// calls that are not executed. Launches, fills, events and captures stay.
void PruneScript(Script& script);

}  // namespace acltape::replayer
