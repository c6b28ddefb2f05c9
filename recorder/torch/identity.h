// Which libtorch the process has: a replay must compute with the same one.
#pragma once

#include "recorder/agent/tape.h"

namespace acltape::torch_plugin {

// Writes the trace's rows torch_version, torch_commit, torch_library (its file) and torch_build_id,
// as far as they are known.
void WriteTorchIdentity(agent::Tape* tape);

}  // namespace acltape::torch_plugin
