// How much of the steps that a script executes its compared outputs tell of (replayer/coverage.h).
#pragma once

#include <functional>

#include "analyzer/calls/coverage.h"
#include "replayer/script/mixed_step.h"

namespace acltape::replayer::script {

// Counts the leaves of each step that the script observes once. `executed` is as in
// MixedStepOptions. An output for which `counts` is false tells of nothing; null: all count.
analyzer::Coverage CoverageOf(const MixedStep& step, const std::vector<bool>& executed,
                              const Script& script,
                              const std::function<bool(const ScriptOutput&)>& counts = nullptr);

}  // namespace acltape::replayer::script
