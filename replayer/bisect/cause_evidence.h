// What a class of cause means for the calls that were found: which wait is missing between them,
// whose bytes are overwritten, which argument is not the step's.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "replayer/bisect/classification.h"
#include "replayer/script/mixed_step.h"

namespace acltape::replayer {

// Sentences for people, the most telling first; with a remedy where one can be named. `captured`
// are the found places; `script` is the step with exactly these captured.
std::vector<std::string> ExplainCause(const MixedStep& step, const MixedStepOptions& options,
                                      const Script& script, const std::vector<size_t>& captured,
                                      const Classification& classification);

// Why the call at the place `later` must wait for the one at `earlier`, with the wait to add to the
// plan; nothing when what they read and write in the program asks for no order.
std::optional<std::string> MissingWaitText(const MixedStep& step, size_t earlier, size_t later);

}  // namespace acltape::replayer
