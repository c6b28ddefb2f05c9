// Tells which libtorch the process has. A replay must compute with the same one.
#pragma once

#include "recorder/agent/tape.h"

namespace acltape::torch_plugin {

// Writes the trace's rows torch_version, torch_commit and torch_build_id, as far as they are known.
// The agent writes torch_library and torch_identity when it looks for the kit.
void WriteTorchIdentity(agent::Tape* tape);

}  // namespace acltape::torch_plugin
