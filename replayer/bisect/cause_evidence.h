// Explains a class of cause for the calls that were found. The sentences name the wait that is
// missing, the bytes that are overwritten, or the argument that is stale.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "replayer/bisect/classification.h"
#include "replayer/script/mixed_step.h"

namespace acltape::replayer::bisect {

// Returns sentences for people, the most helpful first. A sentence names a remedy if there is one.
// `captured` holds the places of the found calls. `script` is the step with exactly these calls
// captured.
std::vector<std::string> ExplainCause(const script::MixedStep& step,
                                      const script::MixedStepOptions& options, const Script& script,
                                      const std::vector<size_t>& captured,
                                      const Classification& classification);

// Returns the reason why the call at the place `later` must wait for the call at `earlier`, and the
// wait to add to the plan. Returns nothing if the bytes that they read and write do not require an
// order.
std::optional<std::string> MissingWaitText(const script::MixedStep& step, size_t earlier,
                                           size_t later);

}  // namespace acltape::replayer::bisect
