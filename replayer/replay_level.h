// A replay of one level of a trace, where the trace holds both (analyzer/level.h).
#pragma once

#include "analyzer/level.h"
#include "replayer/replay.h"

namespace acltape::replayer {

// As Replay, which takes the level that analyzer::ChooseLevel prefers.
ReplayReport ReplayLevel(const storage::Reader& trace, analyzer::Level level,
                         const ReplayOptions& options, storage::Results* results);

}  // namespace acltape::replayer
