#include "replayer/script/step_digests.h"

#include "storage/payload.h"

namespace acltape::replayer::script {

std::string DigestOfSteps(const std::vector<StepDigests>& steps, size_t first, size_t count) {
  std::string text;
  for (size_t i = first; i < first + count; ++i) {
    for (const std::string& digest : steps[i]) text += digest + '\n';
  }
  return storage::DigestOf(text.data(), text.size());
}

std::vector<UnsteadyOutput> FindUnsteadyOutputs(const std::vector<StepDigests>& rounds) {
  std::vector<const StepDigests*> left;
  left.reserve(rounds.size());
  for (const StepDigests& round : rounds) left.push_back(&round);
  std::vector<UnsteadyOutput> flaky;
  const size_t outputs = rounds.empty() ? 0 : rounds.front().size();
  for (size_t output = 0; output < outputs && !left.empty(); ++output) {
    StepDigests column;
    for (const StepDigests* round : left) column.push_back((*round)[output]);
    const std::string usual = MostFrequent(column, 0, 1);
    const size_t before = left.size();
    std::erase_if(left, [&](const StepDigests* round) { return (*round)[output] != usual; });
    if (left.size() == before) continue;
    flaky.push_back({static_cast<int>(output), static_cast<int>(before - left.size()),
                     static_cast<int>(before)});
  }
  return flaky;
}

}  // namespace acltape::replayer::script
