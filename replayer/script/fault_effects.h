// The changes that planted faults (planted_fault.h) make in the script of a step. They are found
// once, and applied when the captured calls are written.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/lowering/lowering.h"
#include "replayer/engine/script.h"

namespace acltape::replayer::script {

// The changes at one captured call.
struct CallEffects {
  // An object (step_places.h) that the call reads from a private block instead. The block holds the
  // content that the capture saw.
  struct Private {
    int object = 0;
    std::vector<int> blocks;  // by capture
    bool refreshed = false;   // copied again in every execution, before the call
  };
  std::vector<Private> reads;
  std::vector<FillBytes> before;  // issued right before the launch
  std::vector<FillBytes> after;   // issued right after the launch
  std::optional<Spot> workspace;
  std::optional<size_t> not_waited_for;  // place of a call
  bool other_scalar = false;             // it gets another value of a host argument
  bool not_updated = false;              // its task group keeps what was captured
};

using FaultEffects = std::map<size_t, CallEffects>;  // by place

// Finds a number that a lowered leaf computes with. Returns its invocation and argument; nothing if
// the leaf has none.
std::optional<std::pair<size_t, size_t>> ScalarThatMatters(
    const analyzer::lowering::Lowering& lowering);
// Changes this number so that the result changes.
void ChangeScalar(analyzer::lowering::LoweredValue& value);

}  // namespace acltape::replayer::script
