#include "cli/choices/step_choice.h"

#include "cli/choices/selection.h"

namespace acltape::cli {

int64_t StepNumber(const replayer::script::MixedStep& step, size_t match) {
  return step.session().program().work.steps[step.step_class().matches.at(match).step_index].step;
}

std::optional<size_t> FindMatch(const replayer::script::MixedStep& step, int64_t number) {
  for (size_t match = 0; match < step.step_class().matches.size(); ++match) {
    if (StepNumber(step, match) == number) return match;
  }
  return std::nullopt;
}

std::string StepNumbers(const replayer::script::MixedStep& step) {
  std::string numbers;
  for (size_t match = 0; match < step.step_class().matches.size(); ++match) {
    if (match != 0) numbers += ", ";
    numbers += std::to_string(StepNumber(step, match));
  }
  return numbers;
}

std::optional<std::vector<bool>> FindPlaces(const storage::Reader& reader,
                                            const replayer::script::MixedStep& step,
                                            const std::string& selection) {
  const auto picked = PickedBy(reader, selection);
  std::vector<bool> places(step.places(), false);
  bool any = false;
  const analyzer::Program& program = step.session().program();
  for (const analyzer::StepMatch& match : step.step_class().matches) {
    for (size_t place = 0; place < places.size(); ++place) {
      if (picked && !picked(program.leaves[match.leaves[place]].call.call_id)) continue;
      places[place] = any = true;
    }
  }
  if (!any) return std::nullopt;
  return places;
}

}  // namespace acltape::cli
