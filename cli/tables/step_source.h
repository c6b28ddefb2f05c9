// Says where the steps of a trace come from, in the same words wherever something is built on them.
#pragma once

#include <string>
#include <string_view>

#include "analyzer/calls/work.h"
#include "cli/terminal/table.h"
#include "storage/reader.h"

namespace acltape::cli {

// Says in words where steps with this `found_by` come from.
std::string StepSource(std::string_view found_by);
// The words for a step of an engine, "decode of 3 tokens, 3 requests"; empty for other steps.
std::string EngineWords(std::string_view found_by);
// The words for the step of this number.
std::string EngineWords(const analyzer::Work& work, int64_t step);
// Adds the row "steps come from" to a table of two columns.
void AddStepSource(Table& table, std::string_view found_by);
// Adds that row for the steps that the trace names. In a trace that names none, the steps were
// guessed and not kept.
void AddStepSource(Table& table, const storage::Reader& trace);

}  // namespace acltape::cli
