#include "analyzer/period.h"

#include <algorithm>
#include <unordered_map>

namespace acltape::analyzer {
namespace {

// A stretch [first, end) of places in which the symbols at i and i + period agree.
struct Stretch {
  int64_t first = 0;
  int64_t end = 0;
  int64_t period = 0;
  int64_t weight = 0;
  int64_t cycles() const { return period == 0 ? 0 : (end - first) / period; }
};

class PeriodSearch {
 public:
  explicit PeriodSearch(const OperatorSequence& sequence) : sequence_(sequence) {
    weight_before_.reserve(sequence.size() + 1);
    weight_before_.push_back(0);
    for (const uint8_t weight : sequence.weights) {
      weight_before_.push_back(weight_before_.back() + weight);
    }
  }

  std::vector<std::pair<size_t, size_t>> Find() const {
    const Stretch best = BestStretch();
    if (best.cycles() < 2) return {};
    return Cut(best);
  }

 private:
  int64_t size() const { return static_cast<int64_t>(sequence_.size()); }
  int64_t Weight(int64_t first, int64_t end) const {
    return weight_before_[end] - weight_before_[first];
  }

  // Distances between consecutive equal stretches of `length` symbols, with their number.
  void AddCandidates(int64_t length, std::unordered_map<int64_t, int64_t>& counts) const {
    if (size() < 2 * length) return;
    constexpr uint64_t kBase = 1000003;
    uint64_t power = 1;
    for (int64_t i = 0; i + 1 < length; ++i) power *= kBase;
    std::unordered_map<uint64_t, int64_t> last_seen;
    uint64_t hash = 0;
    for (int64_t i = 0; i < size(); ++i) {
      hash = hash * kBase + static_cast<uint64_t>(sequence_.symbols[i] + 1);
      if (i + 1 < length) continue;
      const int64_t first = i + 1 - length;
      const auto [entry, created] = last_seen.try_emplace(hash, first);
      if (!created) {
        ++counts[first - entry->second];
        entry->second = first;
      }
      hash -= power * static_cast<uint64_t>(sequence_.symbols[first] + 1);
    }
  }

  // The heaviest stretch of at least two cycles. A run of agreeing places counts from `period` on,
  // so a window of that length is checked from its end: where it disagrees, the places before need
  // no look (as in Boyer and Moore's search), and most wrong candidates are dismissed quickly.
  Stretch LongestStretch(int64_t period) const {
    Stretch best;
    const int32_t* symbols = sequence_.symbols.data();
    const int64_t places = size() - period;  // that have a partner
    int64_t first = 0;                       // of the run
    int64_t agreed = 0;                      // [first, agreed) is known to agree
    while (first + period <= places) {
      int64_t i = first + period;
      while (i > agreed && symbols[i - 1] == symbols[i - 1 + period]) --i;
      if (i > agreed) {  // place i - 1 disagrees, those behind it in the window agree
        agreed = first + period;
        first = i;
        continue;
      }
      int64_t end = first + period;
      while (end < places && symbols[end] == symbols[end + period]) ++end;
      const Stretch stretch{first, end + period, period, Weight(first, end + period)};
      if (stretch.weight > best.weight) best = stretch;
      first = agreed = end + 1;
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
      ranked.reserve(counts.size());
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
      if (sequence_.host_reads[stretch.first + i] != 0) reads.push_back(i);
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

  std::vector<std::pair<size_t, size_t>> Cut(const Stretch& stretch) const {
    std::vector<std::pair<size_t, size_t>> steps;
    const int64_t period = stretch.period;
    const int64_t cut = stretch.first + CutOffset(stretch);
    const int64_t irregular = FirstIteration(cut, period);
    if (irregular < cut) steps.emplace_back(irregular, cut);
    int64_t at = cut;
    for (; at + period <= stretch.end; at += period) steps.emplace_back(at, at + period);
    const int64_t tail = stretch.end - at;
    if (2 * tail >= period && stretch.end == size()) steps.emplace_back(at, stretch.end);
    return steps;
  }

  // The start of an iteration before `cut` that resembles a period but does not match it: the place
  // from which the operators up to `cut` have most in common with those of a period (Dice
  // coefficient of the two bags). `cut` when no place reaches two thirds.
  int64_t FirstIteration(int64_t cut, int64_t period) const {
    std::unordered_map<int32_t, int64_t> missing;
    for (int64_t i = cut; i < cut + period; ++i) ++missing[sequence_.symbols[i]];
    int64_t best = cut;
    double best_score = 2.0 / 3.0;
    int64_t common = 0;
    for (int64_t first = cut - 1; first >= std::max<int64_t>(0, cut - 2 * period); --first) {
      if (missing[sequence_.symbols[first]]-- > 0) ++common;
      const double score =
          2.0 * static_cast<double>(common) / static_cast<double>(cut - first + period);
      if (score > best_score) {
        best_score = score;
        best = first;
      }
    }
    return best;
  }

  const OperatorSequence& sequence_;
  std::vector<int64_t> weight_before_;
};

}  // namespace

std::vector<std::pair<size_t, size_t>> FindPeriods(const OperatorSequence& sequence) {
  return PeriodSearch(sequence).Find();
}

}  // namespace acltape::analyzer
