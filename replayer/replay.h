// Replays a recorded program on an ACL device and proves it equal to the recording.
//
// The leaves of the trace are lowered to aclnn calls (analyzer/lowering). Device memory is planned
// once. Inputs and recorded random values are uploaded at the calls where the program got them.
// Every output is compared with the recorded one, bit for bit or by a precision standard.
//
// In eager mode each leaf is prepared and launched separately, as an eager framework does. In
// captured mode the calls before the first step run eagerly. Then the regions of one template step
// are captured once, on a non-default stream, after a warm-up. Every step of the same class
// executes these graphs, after its changed inputs have been copied to the captured addresses. Steps
// that differ from the template run eagerly and are listed.
//
// A program that was recorded only at the ACL level needs no lowering: its own calls are issued
// again (replayer/acl_level/acl_replay.h).
#pragma once

#include "replayer/values/replay_options.h"
#include "replayer/values/replay_report.h"
#include "storage/reader.h"

namespace acltape::storage {
class Results;
}

namespace acltape::replayer {

// Throws Error kTrace if the trace lacks values that the replay needs (one sentence, with the
// recording option that keeps them), kDevice if the device library or a device call fails. If
// `results` is null, nothing is written to the trace.
ReplayReport ReplayLeaves(const storage::Reader& trace, const ReplayOptions& options,
                          storage::Results* results);

}  // namespace acltape::replayer
