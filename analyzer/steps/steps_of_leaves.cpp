#include "analyzer/steps/steps_of_leaves.h"

#include <algorithm>

namespace acltape::analyzer {

std::vector<StepRange> StepsOfLeaves(const Work& calls,
                                     const std::vector<storage::Step>& leaf_steps) {
  std::vector<StepRange> steps;
  // The index of the step in which the leaf lies; -1: in none.
  const auto step_of = [&](int64_t leaf) {
    const auto after = std::upper_bound(
        leaf_steps.begin(), leaf_steps.end(), leaf,
        [](int64_t id, const storage::Step& step) { return id < step.first_call; });
    if (after == leaf_steps.begin() || leaf > (after - 1)->last_call) return int64_t{-1};
    return static_cast<int64_t>(after - leaf_steps.begin()) - 1;
  };
  int64_t current = -1;
  size_t end = 0;  // the end of what the leaves of the current step made
  for (size_t i = 0; i < calls.size(); ++i) {
    const WorkCall& call = calls.calls[i];
    if (call.parent_id == 0) continue;
    const int64_t step = step_of(call.parent_id);
    if (step >= 0 && step == current) end = i + 1;
    // The thread of the program runs ahead with what it asks. Work on streams comes in order.
    if (step <= current || !IsStreamTask(calls.form(i).acl_kind())) continue;
    StepRange range;
    range.step = leaf_steps[step].step;
    // A copy from the host has no leaf of its own, and neither has a wait between streams. They
    // come before the work that needs them.
    if (current < 0) {
      end = i;
      const auto is_of_step = [&](const WorkCall& before) {
        return before.call_id > leaf_steps[step].first_call &&
               (before.parent_id == 0 || step_of(before.parent_id) == step);
      };
      while (end > 0 && is_of_step(calls.calls[end - 1])) --end;
    }
    range.first = static_cast<int64_t>(end);
    range.end = static_cast<int64_t>(calls.size());
    range.found_by = leaf_steps[step].found_by;
    if (current >= 0) steps.back().end = range.first;
    steps.push_back(std::move(range));
    current = step;
    end = i + 1;
  }
  if (!steps.empty()) steps.back().end = static_cast<int64_t>(end);
  return steps;
}

}  // namespace acltape::analyzer
