#include "analyzer/steps/period.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "analyzer/steps/step_cut.h"

namespace acltape::analyzer {
namespace {

// Places [first, end) that repeat with a period. The symbols at i and i +
// period agree.
struct Repeat {
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
    for (size_t place = 0; place < sequence.size(); ++place) {
      weight_before_.push_back(weight_before_.back() + sequence.weights[place]);
    }
    same_until_.resize(sequence.size());
    for (size_t place = sequence.size(); place-- > 0;) {
      const bool as_next =
          place + 1 < sequence.size() && sequence.symbols[place] == sequence.symbols[place + 1];
      same_until_[place] = as_next ? same_until_[place + 1] : static_cast<int64_t>(place + 1);
    }
  }

  Repetition Find() const { return AsRepetition(BestRepeat(Candidates())); }

  std::vector<Repetition> FindStretches() const {
    const std::vector<int64_t> periods = Candidates();
    const Repeat best = BestRepeat(periods);
    if (best.cycles() < 2) return {};
    for (const int64_t period : periods) {  // ascending
      if (period >= best.period) break;
      const std::vector<Repeat> inner = RepeatsWithGraphs(period);
      int64_t weight = 0;
      for (const Repeat& repeat : inner) weight += repeat.weight;
      if (weight * 10 < best.weight * 9) continue;
      std::vector<Repetition> stretches;
      for (const Repeat& repeat : inner) stretches.push_back(AsRepetition(repeat));
      return stretches;
    }
    return {AsRepetition(best)};
  }

 private:
  int64_t size() const { return static_cast<int64_t>(sequence_.size()); }
  int64_t Weight(int64_t first, int64_t end) const {
    return weight_before_[end] - weight_before_[first];
  }
  // True if a cycle that begins at `first` can be a step.
  bool CanBeAStep(int64_t first, int64_t period) const {
    return sequence_.one_place_can_be_a_step || same_until_[first] < first + period;
  }

  static Repetition AsRepetition(const Repeat& repeat) {
    if (repeat.cycles() < 2) return {};
    return {static_cast<size_t>(repeat.first), static_cast<size_t>(repeat.end),
            static_cast<size_t>(repeat.period), repeat.weight};
  }

  // Counts the distances between consecutive equal runs of `length` symbols.
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

  // Visits every repeat of at least two cycles, in order. Only runs of `period` or more agreeing
  // places count, so a window of that length is checked from its end. If it disagrees somewhere, no
  // earlier place can begin a run (as in Boyer and Moore's search). Most wrong candidates fail
  // quickly.
  template <typename Visitor>
  void VisitRepeats(int64_t period, const Visitor& visitor) const {
    const int32_t* symbols = sequence_.symbols.data();
    const int64_t places = size() - period;  // places that have a partner
    int64_t first = 0;                       // first place of the run
    int64_t agreed = 0;                      // [first, agreed) is known to agree
    while (first + period <= places) {
      int64_t i = first + period;
      while (i > agreed && symbols[i - 1] == symbols[i - 1 + period]) --i;
      if (i > agreed) {  // place i - 1 disagrees, those after it agree
        agreed = first + period;
        first = i;
        continue;
      }
      int64_t end = first + period;
      while (end < places && symbols[end] == symbols[end + period]) ++end;
      visitor(Repeat{first, end + period, period, Weight(first, end + period)});
      first = agreed = end + 1;
    }
  }

  Repeat LongestRepeat(int64_t period) const {
    Repeat best;
    VisitRepeats(period, [&](const Repeat& repeat) {
      if (repeat.weight > best.weight && CanBeAStep(repeat.first, period)) best = repeat;
    });
    return best;
  }

  // True if a cycle executes a graph of the program and reads a result.
  bool ExecutesAndReads(int64_t first, int64_t period) const {
    bool executes = false;
    bool reads = false;
    for (int64_t place = first; place < first + period; ++place) {
      executes = executes || sequence_.ExecutesGraph(place);
      reads = reads || sequence_.HostReads(place);
    }
    return executes && reads;
  }

  // The repeats whose cycles execute a graph and read a result. They share no place.
  std::vector<Repeat> RepeatsWithGraphs(int64_t period) const {
    std::vector<Repeat> repeats;
    VisitRepeats(period, [&](const Repeat& repeat) {
      const bool apart = repeats.empty() || repeats.back().end <= repeat.first;
      if (apart && ExecutesAndReads(repeat.first, period)) repeats.push_back(repeat);
    });
    return repeats;
  }

  // The periods that may be those of steps, ascending.
  std::vector<int64_t> Candidates() const {
    // Short runs find short periods. Long runs are not misled by repeated layers inside a step.
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
    return periods;
  }

  Repeat BestRepeat(const std::vector<int64_t>& periods) const {
    std::vector<Repeat> repeats;
    int64_t most = 0;
    for (const int64_t period : periods) {
      repeats.push_back(LongestRepeat(period));
      most = std::max(most, repeats.back().weight);
    }
    for (const Repeat& repeat : repeats) {  // by ascending period
      if (most > 0 && repeat.weight * 20 >= most * 19) return repeat;
    }
    return {};
  }

  const OperatorSequence& sequence_;
  std::vector<int64_t> weight_before_;
  std::vector<int64_t> same_until_;  // by place: the end of the run of its symbol
};

// Among the host reads of a cycle, takes the one after which most places follow without another,
// and returns the place after it. Returns `first` if the cycle has none. A read of an optimiser
// (its step counters) ends no step.
size_t AfterTheHostRead(const OperatorSequence& sequence, size_t first, size_t period) {
  std::vector<size_t> reads;
  for (size_t place = first; place < first + period; ++place) {
    const bool optimizer = sequence.phases[place] == storage::Phase::kOptimizer;
    if (sequence.HostReads(place) && !optimizer) reads.push_back(place);
  }
  size_t best = first;
  std::ptrdiff_t best_gap = -1;
  for (size_t r = 0; r < reads.size(); ++r) {
    const bool last = r + 1 == reads.size();
    std::ptrdiff_t gap = 0;
    for (size_t place = reads[r] + 1; place < (last ? first + period : reads[r + 1]); ++place) {
      gap += sequence.weights[place];
    }
    for (size_t place = first; last && place < reads[0]; ++place) gap += sequence.weights[place];
    if (gap <= best_gap) continue;
    best_gap = gap;
    best = reads[r] + 1;
  }
  return best;
}

// A cut inside the cycle that begins at `repetition.first`.
size_t FirstCut(const OperatorSequence& sequence, const Repetition& repetition) {
  const size_t period = repetition.period;
  // The cycle for the cut. It has a whole cycle before it if there are at least three.
  const size_t cycle =
      repetition.first + (repetition.end - repetition.first >= 3 * period ? period : 0);
  const auto in_cycle = [&](size_t place) {
    return cycle + (place + period - repetition.first % period) % period;
  };
  CutQuestion question;
  question.cuts = {cycle, cycle + period - 1};
  question.window = {cycle - std::min(cycle, period),
                     std::min(sequence.size(), cycle + 2 * period)};
  question.longest = period;
  question.clues = {in_cycle(repetition.end), in_cycle(AfterTheHostRead(sequence, cycle, period)),
                    in_cycle(repetition.first)};
  const std::vector<uint8_t> inside = PlacesInsideRanges(sequence, period + period / 2);
  return ChooseCut(sequence, inside, question).place - cycle + repetition.first;
}

}  // namespace

Repetition FindRepetition(const OperatorSequence& sequence) {
  return PeriodSearch(sequence).Find();
}

std::vector<Repetition> FindStretches(const OperatorSequence& sequence) {
  return PeriodSearch(sequence).FindStretches();
}

std::vector<PlaceRange> CutRepetition(const OperatorSequence& sequence,
                                      const Repetition& repetition, size_t earliest) {
  if (repetition.period == 0) return {};
  std::vector<PlaceRange> steps;
  const size_t period = repetition.period;
  const size_t cut = FirstCut(sequence, repetition);
  const size_t from = std::max(earliest, cut - std::min(cut, 2 * period));
  const size_t irregular = FirstIteration(sequence, cut, {cut, cut + period}, from);
  if (irregular < cut) steps.emplace_back(irregular, cut);
  size_t first = cut;
  for (; first + period <= repetition.end; first += period)
    steps.emplace_back(first, first + period);
  const size_t tail = repetition.end - first;
  if (2 * tail >= period && repetition.end == sequence.size()) {
    steps.emplace_back(first, repetition.end);
  }
  return steps;
}

size_t FirstIteration(const OperatorSequence& sequence, size_t cut, PlaceRange like,
                      size_t earliest) {
  std::unordered_map<int32_t, int64_t> missing;
  for (size_t i = like.first; i < like.second; ++i) ++missing[sequence.symbols[i]];
  size_t best = cut;
  double best_score = 2.0 / 3.0;
  int64_t common = 0;
  for (size_t first = cut; first > earliest; --first) {
    if (missing[sequence.symbols[first - 1]]-- > 0) ++common;
    const double score = 2.0 * static_cast<double>(common) /
                         static_cast<double>(cut - first + 1 + like.second - like.first);
    if (score <= best_score) continue;
    best_score = score;
    best = first - 1;
  }
  return best;
}

}  // namespace acltape::analyzer
