// Puts planted faults into the script of a step.
#include "replayer/script/step_script.h"

namespace acltape::replayer {

void StepScript::PlantFaults() {
  if (options_.faults.empty()) return;
  throw Error(ErrorKind::kUsage, "faults cannot be planted yet");
}

std::optional<std::pair<size_t, size_t>> ScalarThatMatters(const analyzer::Lowering&) {
  return std::nullopt;
}
void ChangeScalar(analyzer::LoweredValue&) {}

}  // namespace acltape::replayer
