// Steps and calls of a class of steps as a user names them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "replayer/script/mixed_step.h"
#include "storage/reader.h"

namespace acltape::cli {

// The number of a step of the class, as the trace has it.
int64_t StepNumber(const replayer::script::MixedStep& step, size_t match);
// The index in the class of the step with this number; none when the class has no such step.
std::optional<size_t> FindMatch(const replayer::script::MixedStep& step, int64_t number);
// "0, 1, 2": all of the class.
std::string StepNumbers(const replayer::script::MixedStep& step);

// For each place, true when a selection (selection.h) picks the call there in some step of the
// class. Nothing when it picks no place.
std::optional<std::vector<bool>> FindPlaces(const storage::Reader& reader,
                                            const replayer::script::MixedStep& step,
                                            const std::string& selection);

}  // namespace acltape::cli
