#include "replayer/script/alterations.h"

namespace acltape::replayer::script {

std::string CapturedCalls::Describe(size_t element) const {
  return step_.session().program().Describe(
      step_.step_class().leaves[step_.capturable().at(element)]);
}

void CapturedCalls::Apply(const ElementSet& altered, MixedStepOptions& options) const {
  options.captured.assign(step_.places(), false);
  for (const size_t element : altered) options.captured[step_.capturable().at(element)] = true;
  // Tasks can be disabled only from some call to the end. Other sets are captured separately.
  const bool prefix = !altered.empty() && altered.back() + 1 == altered.size();
  options.disable_tasks = options.disable_tasks && prefix;
}

meaning::OptionChange CapturedCalls::Change(const ElementSet& altered) const {
  if (altered.empty()) return {"captured", "none"};
  if (altered.size() == size()) return {"captured", "all"};
  std::string calls;
  for (const size_t element : altered) {
    if (!calls.empty()) calls += ',';
    calls += std::to_string(step_.CallAt(step_.capturable().at(element)));
  }
  return {"captured", calls};
}

}  // namespace acltape::replayer::script
