// Runs a script on a device.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "replayer/device/device.h"
#include "replayer/engine/script.h"

namespace acltape::replayer::script {

// The digests of one observation, by output (storage::DigestOf over packed row-major elements).
struct Observed {
  std::vector<std::string> digests;
};

// Called with the packed row-major bytes of each output while they are available. Null: only
// digests are wanted.
using OutputSink =
    std::function<void(int observation, int output, const std::vector<uint8_t>& packed)>;

// Runs all operations once and returns the observations. Device memory is allocated for this call.
// Throws LeafRefused (replayer/engine/execution.h) if the device cannot run an operator, CallFailed
// if a call of the interface fails. The device has drained then and can be used again.
std::vector<Observed> RunScript(Device& device, const Script& script, const OutputSink& sink);

}  // namespace acltape::replayer::script
