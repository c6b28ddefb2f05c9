#include "analyzer/lint/eager_runs.h"

#include <algorithm>

namespace acltape::analyzer::lint {
namespace {

// A run of fewer launches may be equal by chance.
constexpr size_t kFewest = 2;

bool IsLaunch(const Work& work, size_t call) {
  return work.form(call).acl_kind() == AclCallKind::kOperator && work.calls[call].status == 0;
}

// True if both calls have the same operator and come from the same line, as far as the lines are
// known.
bool IsSame(const Work& work, const Places& places, uint32_t a, uint32_t b) {
  if (work.op(a).op_id != work.op(b).op_id) return false;
  const int32_t place_a = places.Of(a);
  const int32_t place_b = places.Of(b);
  return place_a == 0 || place_b == 0 || place_a == place_b;
}

// Returns for each beginning of `run` the length of its longest proper beginning that is also its
// end (Knuth, Morris and Pratt).
std::vector<size_t> Borders(const Work& work, const Places& places,
                            const std::vector<uint32_t>& run) {
  std::vector<size_t> borders(run.size() + 1, 0);
  for (size_t i = 1, length = 0; i < run.size(); ++i) {
    while (length > 0 && !IsSame(work, places, run[i], run[length])) length = borders[length];
    if (IsSame(work, places, run[i], run[length])) ++length;
    borders[i + 1] = length;
  }
  return borders;
}

}  // namespace

graph::StepFamily FindEagerRuns(const Work& work, const Places& places, const Stretch& capture) {
  graph::StepFamily runs;
  std::vector<uint32_t> captured;
  for (size_t i = capture.first; i < capture.end; ++i) {
    if (work.calls[i].model_id != capture.model_id || !IsLaunch(work, i)) continue;
    captured.push_back(static_cast<uint32_t>(i));
  }
  runs.places = captured.size();
  runs.steps = {0};
  runs.calls = captured;
  if (capture.model_id == 0 || captured.size() < kFewest) return runs;

  const std::vector<size_t> borders = Borders(work, places, captured);
  std::vector<uint32_t> eager;  // launches so far
  size_t matched = 0;
  for (size_t i = 0; i < work.size(); ++i) {
    if (work.calls[i].model_id != 0 || !IsLaunch(work, i)) continue;
    const auto call = static_cast<uint32_t>(i);
    eager.push_back(call);
    while (matched > 0 && !IsSame(work, places, call, captured[matched]))
      matched = borders[matched];
    if (IsSame(work, places, call, captured[matched])) ++matched;
    if (matched < captured.size()) continue;
    // Runs do not overlap. The numbers have gaps, so that no run counts as the one before another.
    matched = 0;
    runs.steps.push_back(2 * runs.steps.size());
    runs.calls.insert(runs.calls.end(), eager.end() - static_cast<std::ptrdiff_t>(captured.size()),
                      eager.end());
  }
  return runs;
}

}  // namespace acltape::analyzer::lint
