// A replay of either level of a trace: leaves of PyTorch (replayer/replay.h) or calls of the ACL
// interface (acl_replay.h).
#pragma once

#include "replayer/replay.h"

namespace acltape::replayer::acl_level {

// Replays the level that analyzer::ChooseLevel chooses. A program of the ACL level is replayed call
// by call as it was issued. It is replayed leaf by leaf if there is a plan, if golden inputs,
// repetitions or noise runs are asked for, or with Streams::kLeaves. Throws Error as ReplayLeaves
// does.
ReplayReport Replay(const storage::Reader& trace, const ReplayOptions& options,
                    storage::Results* results);

}  // namespace acltape::replayer::acl_level
