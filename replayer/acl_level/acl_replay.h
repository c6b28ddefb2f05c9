// Replays an ACL program call by call. replayer/replay.h says what a replay proves.
//
// With recorded streams, the program's streams, events, waits, captures and executions are issued
// as recorded. With flat streams, all device work goes to one stream, in an order that the
// program's own events allow. The tasks of a graph are then issued one by one where the graph was
// executed.
#pragma once

#include "replayer/replay.h"
#include "storage/reader.h"

namespace acltape::replayer::acl_level {

// Throws the errors of ReplayLeaves.
ReplayReport ReplayAcl(const storage::Reader& trace, const ReplayOptions& options,
                       storage::Results* results);

}  // namespace acltape::replayer::acl_level
