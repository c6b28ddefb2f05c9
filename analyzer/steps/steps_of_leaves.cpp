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
  int64_t latest = -1;  // steps come in order; a straggler belongs to the step that runs
  for (size_t i = 0; i < calls.size(); ++i) {
    const WorkCall& call = calls.calls[i];
    if (call.parent_id == 0 || !IsStreamTask(calls.form(i).acl_kind())) continue;
    const int64_t step = step_of(call.parent_id);
    if (step == current || (step >= 0 && step < latest)) continue;
    if (current >= 0) steps.back().end = static_cast<int64_t>(i);
    current = step;
    if (step <= latest) continue;
    latest = step;
    StepRange range;
    range.step = leaf_steps[step].step;
    range.first = static_cast<int64_t>(i);
    range.end = static_cast<int64_t>(calls.size());
    range.found_by = leaf_steps[step].found_by;
    steps.push_back(std::move(range));
  }
  if (!steps.empty() && current >= 0) {
    // What follows the last leaf of the last step is no part of it.
    const int64_t last = leaf_steps[latest].last_call;
    const auto goes_on = [&](const WorkCall& call) {
      return (call.parent_id == 0 ? call.call_id : call.parent_id) <= last;
    };
    const WorkCall* begin = calls.calls.data() + steps.back().first;
    const WorkCall* end = calls.calls.data() + calls.size();
    while (end - begin > 1 && !goes_on(*(end - 1))) --end;
    steps.back().end = end - calls.calls.data();
  }
  return steps;
}

}  // namespace acltape::analyzer
