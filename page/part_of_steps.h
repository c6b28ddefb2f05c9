// The process whose steps, plan and memory a page shows. A trace may hold the work of several: a
// program and the workers that load its data, or the ranks of a distributed program. Their calls
// are never one step.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "analyzer/calls/work.h"
#include "storage/reader.h"

namespace acltape::page {

// The process as TracePart::process names it. Empty: the reader looks at one process already, or
// the trace has only one with calls. Else it is the one that stands for the trace in every command
// (storage/process_choice.h); if none does, the first one by rank and number.
std::string ProcessOfSteps(const storage::Reader& trace);

// The leaves with their steps, from which a plan is made; nothing where there are none. `why` gets
// the sentence.
std::optional<analyzer::Work> LeavesOf(const storage::Reader& trace, std::string& why);

// The steps that the trace names, else those that are found in it now.
std::vector<storage::Step> StepsFor(const storage::Reader& trace,
                                    const std::optional<analyzer::Work>& leaves);

}  // namespace acltape::page
