#include "analyzer/lint/eager_runs.h"

#include <algorithm>
#include <utility>

namespace acltape::analyzer::lint {
namespace {

// A run of fewer launches may be equal by chance.
constexpr size_t kFewest = 2;

constexpr size_t kMostAlike = 64;  // captures of equal lines that are compared with a run

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

std::vector<uint32_t> LaunchesOf(const Work& work, const Stretch& capture) {
  std::vector<uint32_t> launches;
  for (size_t i = capture.first; i < capture.end; ++i) {
    if (work.calls[i].model_id != capture.model_id || !IsLaunch(work, i)) continue;
    launches.push_back(static_cast<uint32_t>(i));
  }
  return launches;
}

}  // namespace

ServedRuns::ServedRuns(const Work& work, const Places& places,
                       const std::vector<Stretch>& stretches)
    : work_(work), places_(places) {
  for (const Stretch& capture : stretches) {
    if (!capture.recorded() || capture.model_id == 0) continue;
    std::vector<uint32_t> launches = LaunchesOf(work, capture);
    if (launches.size() < kFewest) continue;
    std::vector<std::vector<uint32_t>>& alike = captures_[LinesOf(launches)];
    const bool known = std::any_of(alike.begin(), alike.end(),
                                   [&](const auto& other) { return Serves(other, launches); });
    if (!known && alike.size() < kMostAlike) alike.push_back(std::move(launches));
  }
}

std::vector<std::pair<int64_t, int32_t>> ServedRuns::LinesOf(Launches run) const {
  std::vector<std::pair<int64_t, int32_t>> lines;
  for (const uint32_t call : run) lines.emplace_back(work_.op(call).op_id, places_.Of(call));
  return lines;
}

bool ServedRuns::Serves(Launches capture, Launches run) const {
  graph::StepFamily two;
  two.places = run.size();
  two.steps = {0, 2};  // none counts as the one before the other
  two.calls.assign(capture.begin(), capture.end());
  two.calls.insert(two.calls.end(), run.begin(), run.end());
  const auto varying = graph::FindVaryingArguments(work_, two);
  return std::all_of(varying.begin(), varying.end(), [](const graph::ArgumentVariation& one) {
    return one.kind == graph::VariationKind::kLayout;
  });
}

bool ServedRuns::IsServed(Launches run) {
  const auto alike = captures_.find(LinesOf(run));
  if (alike == captures_.end()) return false;
  std::vector<int32_t> forms;
  for (const uint32_t launch : run) forms.push_back(work_.calls[launch].form);
  const auto [known, is_new] = served_.try_emplace({&alike->second, std::move(forms)}, false);
  if (!is_new) return known->second;
  known->second = std::any_of(alike->second.begin(), alike->second.end(),
                              [&](const auto& capture) { return Serves(capture, run); });
  return known->second;
}

void ServedRuns::LeaveOut(graph::StepFamily& runs) {
  graph::StepFamily left;
  left.places = runs.places;
  for (size_t r = 0; r < runs.steps.size(); ++r) {
    const Launches run(runs.calls.data() + r * runs.places, runs.places);
    if (r != 0 && IsServed(run)) continue;
    left.steps.push_back(runs.steps[r]);
    left.calls.insert(left.calls.end(), run.begin(), run.end());
  }
  runs = std::move(left);
}

graph::StepFamily FindEagerRuns(const Work& work, const Places& places, const Stretch& capture) {
  graph::StepFamily runs;
  const std::vector<uint32_t> captured = LaunchesOf(work, capture);
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
