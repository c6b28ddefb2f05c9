// Runs a script on a device.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "replayer/device.h"
#include "replayer/script/script.h"

namespace acltape::replayer {

// What one observation saw, by output of the observation: digests (storage::DigestOf over packed
// row-major elements).
struct Observed {
  std::vector<std::string> digests;
};

// Called with the packed row-major bytes of each output while they are at hand; null: only digests.
using OutputSink =
    std::function<void(int observation, int output, const std::vector<uint8_t>& packed)>;

// Runs all operations once and returns what each observation saw. Device memory is allocated for
// the call. Throws LeafRefused (replayer/execution.h) when the device cannot run an operator,
// CallFailed when a call of the interface fails; the device has then drained and can be used again.
std::vector<Observed> RunScript(Device& device, const Script& script, const OutputSink& sink);

}  // namespace acltape::replayer
