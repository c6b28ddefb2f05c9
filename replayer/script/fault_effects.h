// What planted faults (planted_fault.h) change in the script of a step: found once, applied where
// the captured calls are written.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/lowering/lowering.h"
#include "replayer/script/script.h"

namespace acltape::replayer {

// At one captured call.
struct CallEffects {
  // Objects (step_places.h) that the call reads at a private block instead, which holds what the
  // capture saw.
  struct Private {
    int object = 0;
    std::vector<int> blocks;  // by capture
    bool refreshed = false;   // in every execution, right before the call
  };
  std::vector<Private> reads;
  std::vector<FillBytes> before;  // right before the launch
  std::vector<FillBytes> after;   // right behind it
  std::optional<Spot> workspace;
  std::optional<size_t> not_waited_for;  // place of the call that it does not wait for
  bool other_scalar = false;             // holds another value of a host argument
  bool not_updated = false;              // its task group keeps what was captured
};

using FaultEffects = std::map<size_t, CallEffects>;  // by place

// Where a lowered leaf has a number that it computes with: (invocation, argument); nothing when it
// has none.
std::optional<std::pair<size_t, size_t>> ScalarThatMatters(const analyzer::Lowering& lowering);
// Changes that number to one that gives another result.
void ChangeScalar(analyzer::LoweredValue& value);

}  // namespace acltape::replayer
