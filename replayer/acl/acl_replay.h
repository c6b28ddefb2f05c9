// Replays an ACL program call by call. See replayer/replay.h for what a replay proves.
//
// Recorded streams: the program's streams, events, waits, captures and executions are issued as
// recorded. Flat: all device work goes to one stream in an order that the program's own events
// allow; its graphs are issued task by task where they ran.
#pragma once

#include "replayer/replay.h"
#include "storage/reader.h"

namespace acltape::replayer {

// Whether a trace holds a program at the ACL level and none at the level of PyTorch.
bool IsAclTrace(const storage::Reader& trace);

// Throws Error as replayer::Replay does.
ReplayReport ReplayAcl(const storage::Reader& trace, const ReplayOptions& options,
                       storage::Results* results);

}  // namespace acltape::replayer
