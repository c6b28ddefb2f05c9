#include "analyzer/steps.h"

#include <algorithm>
#include <unordered_map>

#include "storage/results.h"

namespace acltape::analyzer {
namespace {

using Symbol = int32_t;

// A stretch [first, end) of leaves in which the names at i and i + period agree.
struct Stretch {
  int64_t first = 0;
  int64_t end = 0;
  int64_t period = 0;
  int64_t weight = 0;  // kernels and host reads in it
  int64_t cycles() const { return period == 0 ? 0 : (end - first) / period; }
};

class PeriodSearch {
 public:
  explicit PeriodSearch(const Program& program) : program_(program) {
    std::unordered_map<int64_t, Symbol> symbol_of_op;
    for (const Leaf& leaf : program.leaves) {
      auto [entry, created] =
          symbol_of_op.emplace(leaf.call.op_id, static_cast<Symbol>(symbol_of_op.size()));
      symbols_.push_back(entry->second);
    }
    weight_before_.push_back(0);
    for (const Leaf& leaf : program.leaves) {
      const bool counts = leaf.kind == LeafKind::kKernel || leaf.kind == LeafKind::kHostRead;
      weight_before_.push_back(weight_before_.back() + (counts ? 1 : 0));
    }
  }

  std::vector<StepRange> Find() const {
    const Stretch best = BestStretch();
    if (best.cycles() < 2) return {};
    return Cut(best);
  }

 private:
  int64_t size() const { return static_cast<int64_t>(symbols_.size()); }
  int64_t Weight(int64_t first, int64_t end) const {
    return weight_before_[end] - weight_before_[first];
  }

  // Distances between consecutive equal stretches of `length` names, with their number.
  void AddCandidates(int64_t length, std::unordered_map<int64_t, int64_t>& counts) const {
    if (size() < 2 * length) return;
    constexpr uint64_t kBase = 1000003;
    uint64_t power = 1;
    for (int64_t i = 0; i + 1 < length; ++i) power *= kBase;
    std::unordered_map<uint64_t, int64_t> last_seen;
    uint64_t hash = 0;
    for (int64_t i = 0; i < size(); ++i) {
      hash = hash * kBase + static_cast<uint64_t>(symbols_[i] + 1);
      if (i + 1 < length) continue;
      const int64_t first = i + 1 - length;
      auto [entry, created] = last_seen.emplace(hash, first);
      if (!created) {
        ++counts[first - entry->second];
        entry->second = first;
      }
      hash -= power * static_cast<uint64_t>(symbols_[first] + 1);
    }
  }

  Stretch LongestStretch(int64_t period) const {
    Stretch best;
    int64_t run_first = 0;
    for (int64_t i = 0; i + period <= size(); ++i) {
      const bool agrees = i + period < size() && symbols_[i] == symbols_[i + period];
      if (agrees) continue;
      if (i - run_first >= period) {  // at least two cycles
        const Stretch stretch{run_first, i + period, period, Weight(run_first, i + period)};
        if (stretch.weight > best.weight) best = stretch;
      }
      run_first = i + 1;
    }
    return best;
  }

  Stretch BestStretch() const {
    // Short stretches find short periods; long ones see past the repetition of layers in a step.
    constexpr int64_t kLengths[] = {1, 4, 16, 64, 256};
    constexpr size_t kCandidatesPerLength = 48;
    std::vector<int64_t> periods;
    for (const int64_t length : kLengths) {
      std::unordered_map<int64_t, int64_t> counts;
      AddCandidates(length, counts);
      std::vector<std::pair<int64_t, int64_t>> ranked;  // places it explains, period
      for (const auto& [period, count] : counts) ranked.emplace_back(count, period);
      std::sort(ranked.rbegin(), ranked.rend());
      if (ranked.size() > kCandidatesPerLength) ranked.resize(kCandidatesPerLength);
      for (const auto& [count, period] : ranked) periods.push_back(period);
    }
    std::sort(periods.begin(), periods.end());
    periods.erase(std::unique(periods.begin(), periods.end()), periods.end());

    std::vector<Stretch> stretches;
    int64_t most = 0;
    for (const int64_t period : periods) {
      stretches.push_back(LongestStretch(period));
      most = std::max(most, stretches.back().weight);
    }
    for (const Stretch& stretch : stretches) {  // ascending periods
      if (most > 0 && stretch.weight * 20 >= most * 19) return stretch;
    }
    return {};
  }

  // Where in [0, period) the cycle is cut, relative to stretch.first.
  int64_t CutOffset(const Stretch& stretch) const {
    std::vector<int64_t> reads;
    for (int64_t i = 0; i < stretch.period; ++i) {
      if (program_.leaves[stretch.first + i].kind == LeafKind::kHostRead) reads.push_back(i);
    }
    int64_t best_offset = 0;
    int64_t best_gap = -1;
    for (size_t r = 0; r < reads.size(); ++r) {
      const int64_t next = r + 1 < reads.size() ? reads[r + 1] : reads[0] + stretch.period;
      const int64_t gap = Weight(std::min(stretch.first + reads[r] + 1, size()),
                                 std::min(stretch.first + next, size()));
      if (gap > best_gap) {
        best_gap = gap;
        best_offset = (reads[r] + 1) % stretch.period;
      }
    }
    return best_offset;
  }

  std::vector<StepRange> Cut(const Stretch& stretch) const {
    std::vector<StepRange> steps;
    const auto add = [&steps](int64_t first, int64_t end) {
      StepRange range;
      range.step = static_cast<int64_t>(steps.size());
      range.first_leaf = first;
      range.end_leaf = end;
      range.found_by = "period";
      steps.push_back(range);
    };
    const int64_t period = stretch.period;
    const int64_t cut = stretch.first + CutOffset(stretch);
    const int64_t irregular = FirstIteration(cut, period);
    if (irregular < cut) add(irregular, cut);
    int64_t at = cut;
    for (; at + period <= stretch.end; at += period) add(at, at + period);
    const int64_t tail = stretch.end - at;
    if (2 * tail >= period && stretch.end == size()) add(at, stretch.end);
    return steps;
  }

  // The start of an iteration before `cut` that resembles a period but does not match it: the place
  // from which the names up to `cut` have most in common with those of a period (Dice coefficient
  // of the two bags of names). `cut` when no place reaches two thirds.
  int64_t FirstIteration(int64_t cut, int64_t period) const {
    std::unordered_map<Symbol, int64_t> missing;
    for (int64_t i = cut; i < cut + period; ++i) ++missing[symbols_[i]];
    int64_t best = cut;
    double best_score = 2.0 / 3.0;
    int64_t common = 0;
    for (int64_t first = cut - 1; first >= std::max<int64_t>(0, cut - 2 * period); --first) {
      if (missing[symbols_[first]]-- > 0) ++common;
      const double score =
          2.0 * static_cast<double>(common) / static_cast<double>(cut - first + period);
      if (score > best_score) {
        best_score = score;
        best = first;
      }
    }
    return best;
  }

  const Program& program_;
  std::vector<Symbol> symbols_;
  std::vector<int64_t> weight_before_;
};

std::vector<StepRange> RecordedSteps(const Program& program) {
  std::vector<StepRange> ranges;
  for (const storage::Step& step : program.trace->Steps()) {
    const auto by_call = [](const Leaf& leaf, int64_t call) { return leaf.call.call_id < call; };
    const auto first =
        std::lower_bound(program.leaves.begin(), program.leaves.end(), step.first_call, by_call);
    const auto end = std::lower_bound(first, program.leaves.end(), step.last_call + 1, by_call);
    if (first == end) continue;
    StepRange range;
    range.step = step.step;
    range.first_leaf = first - program.leaves.begin();
    range.end_leaf = end - program.leaves.begin();
    range.found_by = step.found_by;
    ranges.push_back(range);
  }
  return ranges;
}

}  // namespace

std::vector<StepRange> FindSteps(const Program& program) {
  std::vector<StepRange> recorded = RecordedSteps(program);
  return recorded.empty() ? PeriodSearch(program).Find() : recorded;
}

void AssignSteps(Program& program, storage::Results* results) {
  program.steps = FindSteps(program);
  for (Leaf& leaf : program.leaves) leaf.step = -1;
  for (size_t s = 0; s < program.steps.size(); ++s) {
    const StepRange& range = program.steps[s];
    for (int64_t i = range.first_leaf; i < range.end_leaf; ++i) {
      program.leaves[i].step = static_cast<int64_t>(s);
    }
  }
  if (results == nullptr || program.steps.empty() || program.steps[0].found_by != "period" ||
      !program.trace->Steps().empty()) {
    return;
  }
  std::vector<storage::Step> rows;
  for (const StepRange& range : program.steps) {
    storage::Step row;
    row.step = range.step;
    row.first_call = program.leaves[range.first_leaf].call.call_id;
    row.last_call = program.leaves[range.end_leaf - 1].call.call_id;
    row.found_by = range.found_by;
    rows.push_back(row);
  }
  results->ReplaceSteps(rows);
}

}  // namespace acltape::analyzer
