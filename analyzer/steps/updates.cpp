#include "analyzer/steps/updates.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "analyzer/steps/period.h"
#include "base/joined_sets.h"

namespace acltape::analyzer {
namespace {

using storage::Phase;

// Says for each place whether the call updates parameters.
std::vector<uint8_t> UpdatingCalls(const OperatorSequence& sequence) {
  std::vector<uint8_t> updating(sequence.size());
  bool optimizer = false;
  bool backward = false;
  for (size_t place = 0; place < sequence.size(); ++place) {
    updating[place] = sequence.phases[place] == Phase::kOptimizer ? 1 : 0;
    optimizer = optimizer || updating[place] != 0;
    backward = backward || sequence.phases[place] == Phase::kBackward;
  }
  if (optimizer || !backward) return updating;
  std::unordered_set<int64_t> gradients;  // buffers that a backward pass wrote
  for (size_t place = 0; place < sequence.size(); ++place) {
    const bool in_backward = sequence.phases[place] == Phase::kBackward;
    bool reads_gradient = false;
    sequence.VisitAccesses(place, [&](const ByteAccess& access) {
      reads_gradient = reads_gradient || (!access.write && gradients.contains(access.buffer));
    });
    updating[place] = !in_backward && reads_gradient ? 1 : 0;
    sequence.VisitAccesses(place, [&](const ByteAccess& access) {
      if (!access.write) return;
      if (in_backward) gradients.insert(access.buffer);
      if (!in_backward && !reads_gradient) gradients.erase(access.buffer);
    });
  }
  return updating;
}

// Updates that write a common buffer are of one kind. An update that shares no buffer with any
// other is classified by its operators.
void SetKinds(const OperatorSequence& sequence, const std::vector<uint8_t>& updating,
              std::vector<Update>& updates) {
  base::JoinedSets kinds(updates.size());
  std::vector<uint8_t> shares(updates.size());
  std::unordered_map<int64_t, int32_t> writer;  // one update that writes it, by buffer
  for (size_t u = 0; u < updates.size(); ++u) {
    for (size_t place = updates[u].first; place < updates[u].end; ++place) {
      if (updating[place] == 0) continue;
      sequence.VisitAccesses(place, [&](const ByteAccess& access) {
        if (!access.write) return;
        const auto own = static_cast<int32_t>(u);
        const auto [entry, created] = writer.try_emplace(access.buffer, own);
        if (created || entry->second == own) return;
        shares[u] = shares[entry->second] = 1;
        kinds.Join(u, static_cast<size_t>(entry->second));
      });
    }
  }
  std::unordered_map<uint64_t, int32_t> lonely;  // by operators
  for (size_t u = 0; u < updates.size(); ++u) {
    updates[u].kind = static_cast<int32_t>(kinds.Find(u));
    if (shares[u] != 0) continue;
    uint64_t hash = 0;
    for (size_t place = updates[u].first; place < updates[u].end; ++place) {
      hash = hash * 1000003 + static_cast<uint64_t>(sequence.symbols[place]) + 1;
    }
    updates[u].kind = lonely.try_emplace(hash, updates[u].kind).first->second;
  }
}

// Adds the last updates of the steps among [first, end), found by the period of their kinds. Parts
// before and after the repetition have their own periods, such as a phase that warms up.
class StepEnds {
 public:
  StepEnds(const std::vector<Update>& updates, const BytesAfter& bytes_after)
      : updates_(updates), bytes_after_(bytes_after) {}

  std::vector<size_t> Find() {
    Add(0, updates_.size(), 0);
    return std::move(ends_);
  }

 private:
  void Add(size_t first, size_t end, int depth) {
    constexpr int kMostPhases = 16;  // phases of a program; with more there is no order to find
    if (first >= end) return;
    OperatorSequence kinds;
    for (size_t u = first; u < end; ++u) {
      kinds.Add(updates_[u].kind, LeafKind::kKernel, Phase::kOptimizer);
    }
    const Repetition found = depth < kMostPhases ? FindRepetition(kinds) : Repetition{};
    if (found.period == 0) {
      ends_.push_back(end - 1);
      return;
    }
    const size_t from = first + found.first;
    const size_t to = first + found.end;
    Add(first, from, depth + 1);
    size_t last = LastOfPeriod(from, to, found.period);
    for (; last < to; last += found.period) ends_.push_back(last);
    const size_t rest = last - found.period + 1;
    if (rest > first && rest < end) Add(rest, end, depth + 1);
  }

  // Finds the first update in [first, end) that ends a step, for a given period.
  size_t LastOfPeriod(size_t first, size_t end, size_t period) const {
    const size_t aligned_with_end = first + (end - 1 - first) % period;
    size_t best = aligned_with_end;
    if (period == 1) return best;
    // Looks at the second cycle if another one follows it, because the first one sets up state.
    const size_t later = end - first >= 3 * period ? period : 0;
    int64_t fewest = bytes_after_(best + later, period);
    for (const size_t candidate : Rotations(first, period)) {
      const int64_t bytes = bytes_after_(candidate + later, period);
      if (bytes >= fewest) continue;
      fewest = bytes;
      best = candidate;
    }
    return best;
  }

  // The candidates. The first one lets the repetition begin with a whole step.
  static std::vector<size_t> Rotations(size_t first, size_t period) {
    std::vector<size_t> rotations = {first + period - 1};
    for (size_t i = 0; i + 1 < period; ++i) rotations.push_back(first + i);
    return rotations;
  }

  const std::vector<Update>& updates_;
  const BytesAfter& bytes_after_;
  std::vector<size_t> ends_;
};

}  // namespace

Updates FindUpdates(const OperatorSequence& sequence) {
  Updates updates;
  updates.first_backward = sequence.size();
  const std::vector<uint8_t> updating = UpdatingCalls(sequence);
  const bool has_backward = std::find(sequence.phases.begin(), sequence.phases.end(),
                                      Phase::kBackward) != sequence.phases.end();
  bool open = false;  // no backward pass has followed the update yet
  for (size_t place = 0; place < sequence.size(); ++place) {
    const bool run_begins = updating[place] != 0 && (place == 0 || updating[place - 1] == 0);
    if (has_backward ? sequence.phases[place] == Phase::kBackward : run_begins) {
      if (updates.first_backward == sequence.size()) updates.first_backward = place;
      if (open) updates.list.back().next_backward = place;
      open = false;
    }
    if (updating[place] == 0 || updates.first_backward == sequence.size()) continue;
    if (!open) updates.list.push_back({place, place, sequence.size(), 0});
    updates.list.back().end = place + 1;
    open = true;
  }
  SetKinds(sequence, updating, updates.list);
  return updates;
}

std::vector<size_t> LastUpdatesOfSteps(const Updates& updates, const BytesAfter& bytes_after) {
  return StepEnds(updates.list, bytes_after).Find();
}

}  // namespace acltape::analyzer
