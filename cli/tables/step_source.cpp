#include "cli/tables/step_source.h"

#include "analyzer/steps/steps.h"
#include "meaning/engine_step.h"
#include "meaning/options.h"
#include "recorder/wire/step_name.h"

namespace acltape::cli {

std::string StepSource(std::string_view found_by) {
  constexpr std::string_view kRange = "range:";
  if (found_by == analyzer::kFoundByPeriod) {
    return "a guess, by what repeats; record @steps-from NAME takes the program's own ranges"_cli;
  }
  if (found_by == wire::kFoundByOptimizer) {
    return "the recording: each ends with a step of the optimizer";
  }
  if (meaning::EngineStepFoundBy(found_by)) {
    return "the engine of vLLM: each is one execution of its model, with the sampling";
  }
  if (!found_by.starts_with(kRange)) return std::string(found_by);
  return "ranges of the program, " + std::string(found_by.substr(kRange.size()));
}

std::string EngineWords(std::string_view found_by) {
  const auto step = meaning::EngineStepFoundBy(found_by);
  return step ? meaning::EngineStepWords(*step) : "";
}

std::string EngineWords(const analyzer::Work& work, int64_t step) {
  for (const analyzer::StepRange& range : work.steps) {
    if (range.step == step) return EngineWords(range.found_by);
  }
  return "";
}

void AddStepSource(Table& table, std::string_view found_by) {
  table.Add({"steps come from", StepSource(found_by)});
}

void AddStepSource(Table& table, const storage::Reader& trace) {
  const auto steps = trace.Steps();
  AddStepSource(table, steps.empty() ? analyzer::kFoundByPeriod : steps.front().found_by);
}

}  // namespace acltape::cli
