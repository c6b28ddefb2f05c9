#include "analyzer/steps/training_steps.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "analyzer/steps/period.h"
#include "analyzer/steps/step_cut.h"
#include "analyzer/steps/updates.h"
#include "base/median.h"

namespace acltape::analyzer {
namespace {

// The calls between an update and the next backward pass, and the place where they are cut.
struct Turn {
  size_t first = 0;
  size_t end = 0;
  size_t cut = 0;
  size_t before() const { return cut - first; }  // calls of the step that ends
  size_t after() const { return end - cut; }     // calls of the step that begins
};

class TrainingSteps {
 public:
  explicit TrainingSteps(const OperatorSequence& sequence)
      : sequence_(sequence), updates_(FindUpdates(sequence)) {}

  std::vector<PlaceRange> Find() {
    const std::vector<Update>& list = updates_.list;
    if (list.size() < 2) return {};
    std::vector<size_t> all(list.size());
    std::iota(all.begin(), all.end(), size_t{0});
    inside_range_ = PlacesInsideRanges(sequence_, LongestStep(all));
    ends_ = LastUpdatesOfSteps(
        updates_, [&](size_t update, size_t of_step) { return BytesAfter(update, of_step); });
    if (ends_.size() < 2) return {};
    inside_range_ = PlacesInsideRanges(sequence_, LongestStep(ends_));
    ChooseUsualTurn();
    begin_ = usual_begin_ = Begin();
    std::vector<size_t> cuts = {0};
    for (size_t e = 0; e < ends_.size(); ++e) {
      if (list[ends_[e]].next_backward < sequence_.size()) cuts.push_back(CutAfter(e));
    }
    cuts.front() = begin_;
    std::vector<PlaceRange> steps;
    for (size_t i = 0; i + 1 < cuts.size(); ++i) steps.emplace_back(cuts[i], cuts[i + 1]);
    AddLastStep(cuts.back(), steps);
    return steps;
  }

 private:
  // The most places of a range that must not be cut. A longer range holds several steps, such as
  // one around the loop. `ends` are the updates that end a step.
  size_t LongestStep(const std::vector<size_t>& ends) const {
    std::vector<size_t> lengths;
    for (size_t e = 1; e < ends.size(); ++e) {
      lengths.push_back(updates_.list[ends[e]].end - updates_.list[ends[e - 1]].end);
    }
    return base::UpperMedian(lengths) * 3 / 2;
  }

  // The question for the calls after `update`. `before` and `after` are its neighbours in other
  // steps; -1: none. A value that lives from one step's update to the next one's is state.
  CutQuestion QuestionFor(size_t update, int64_t before, int64_t after) const {
    const std::vector<Update>& list = updates_.list;
    const Update& own = list[update];
    const size_t to_before = before < 0 ? SIZE_MAX : own.end - list[before].end;
    const size_t to_after = after < 0 ? SIZE_MAX : list[after].end - own.end;
    CutQuestion question;
    question.longest = std::min({to_before, to_after, sequence_.size()});
    question.cuts = {own.end, own.next_backward};
    question.window = {own.end - std::min(own.end, question.longest),
                       std::min(sequence_.size(), own.next_backward + question.longest)};
    return question;
  }

  int64_t BytesAfter(size_t update, size_t updates_of_step) const {
    const std::vector<Update>& list = updates_.list;
    if (list[update].next_backward == sequence_.size()) return INT64_MAX;
    const size_t after = update + updates_of_step;
    const CutQuestion question =
        QuestionFor(update, static_cast<int64_t>(update) - static_cast<int64_t>(updates_of_step),
                    after < list.size() ? static_cast<int64_t>(after) : -1);
    return ChooseCut(sequence_, inside_range_, question).bytes;
  }

  Turn TurnAfter(size_t e) const {
    const Update& update = updates_.list[ends_[e]];
    return {update.end, update.next_backward, update.end};
  }

  uint64_t Label(const Turn& turn) const {
    uint64_t hash = turn.end - turn.first;
    for (size_t place = turn.first; place < turn.end; ++place) {
      hash = hash * 1000003 + static_cast<uint64_t>(sequence_.symbols[place]) + 1;
    }
    return hash;
  }

  // The number of places from `a` and `b` on that hold the same operators, up to `most`.
  size_t EqualFrom(size_t a, size_t b, size_t most) const {
    size_t equal = 0;
    while (equal < most && a + equal < sequence_.size() && b + equal < sequence_.size() &&
           sequence_.symbols[a + equal] == sequence_.symbols[b + equal]) {
      ++equal;
    }
    return equal;
  }

  // The first call after the last update.
  size_t TailFirst() const { return updates_.list.back().end; }
  bool EndsWithAStep() const {
    return ends_.back() + 1 == updates_.list.size() &&
           updates_.list.back().next_backward == sequence_.size();
  }

  Turn Cut(size_t e) const {
    Turn turn = TurnAfter(e);
    const auto end_at = [&](size_t i) {
      return i < ends_.size() ? static_cast<int64_t>(ends_[i]) : -1;
    };
    CutQuestion question = QuestionFor(ends_[e], e == 0 ? -1 : end_at(e - 1), end_at(e + 1));
    // The end of the program shows how a step ends: the calls after the last update are also at the
    // start of this turn.
    if (EndsWithAStep()) {
      const size_t most = turn.end - turn.first;
      question.clues.push_back(turn.first + EqualFrom(TailFirst(), turn.first, most));
    }
    turn.cut = ChooseCut(sequence_, inside_range_, question).place;
    return turn;
  }

  // Finds the turn that most steps have, and cuts the one nearest to the middle of these steps.
  void ChooseUsualTurn() {
    std::unordered_map<uint64_t, std::vector<size_t>> steps_of;
    std::vector<uint64_t> labels;
    for (size_t e = 0; e < ends_.size(); ++e) {
      const Turn turn = TurnAfter(e);
      labels.push_back(turn.end == sequence_.size() ? 0 : Label(turn));
      if (turn.end < sequence_.size()) steps_of[labels.back()].push_back(e);
    }
    size_t most = 0;
    size_t chosen = 0;
    for (const uint64_t label : labels) {
      const auto found = steps_of.find(label);
      if (found == steps_of.end() || found->second.size() <= most) continue;
      most = found->second.size();
      chosen = found->second[most / 2];
    }
    usual_ = Cut(chosen);
    turns_.emplace(labels[chosen], usual_);
  }

  size_t CutAfter(size_t e) {
    Turn turn = TurnAfter(e);
    const auto [entry, created] = turns_.try_emplace(Label(turn));
    if (!created) return turn.first + entry->second.before();
    const size_t usual_after = usual_.after();
    if (turn.end - turn.first >= usual_after &&
        EqualFrom(turn.end - usual_after, usual_.cut, usual_after) == usual_after) {
      turn.cut = turn.end - usual_after;
      LetExtraCallsLead(turn);
    } else {
      turn = Cut(e);
    }
    entry->second = turn;
    return turn.cut;
  }

  // Some turns have extra calls between the usual end and start of a step, such as a validation now
  // and then. They belong to the step that ends, unless the program's first step has them before
  // it.
  void LetExtraCallsLead(Turn& turn) {
    if (EqualFrom(turn.first, usual_.first, usual_.before()) < usual_.before()) return;
    const size_t earlier = turn.first + usual_.before();
    if (turn.cut <= earlier) return;
    const size_t extra = turn.cut - earlier;
    if (usual_begin_ < extra) return;
    if (EqualFrom(usual_begin_ - extra, earlier, extra) < extra) return;
    turn.cut = earlier;
    begin_ = usual_begin_ - extra;
  }

  // Finds where the first step begins. It begins as far before its backward pass as the others. If
  // the calls there differ (a first step has no gradients to clear), the most similar place is
  // used.
  size_t Begin() const {
    const size_t end = updates_.first_backward;
    const size_t usual_after = usual_.after();
    if (end >= usual_after &&
        EqualFrom(end - usual_after, usual_.cut, usual_after) == usual_after) {
      return end - usual_after;
    }
    const size_t earliest = end - std::min(end, 2 * usual_after);
    return FirstIteration(sequence_, end, {usual_.cut, usual_.end}, earliest);
  }

  // The last step ends as another one did. If it was cut off, it counts as a step if it is at least
  // half as long as usual.
  void AddLastStep(size_t begin, std::vector<PlaceRange>& steps) const {
    if (!EndsWithAStep()) {
      const size_t usual = steps.empty() ? 0 : steps.back().second - steps.back().first;
      if (2 * (sequence_.size() - begin) >= usual) steps.emplace_back(begin, sequence_.size());
      return;
    }
    size_t length = 0;
    for (const auto& [label, turn] : turns_) {
      length = std::max(length, EqualFrom(TailFirst(), turn.first, turn.before()));
    }
    steps.emplace_back(begin, TailFirst() + length);
  }

  const OperatorSequence& sequence_;
  Updates updates_;
  std::vector<uint8_t> inside_range_;
  std::vector<size_t> ends_;  // the updates that end a step
  size_t begin_ = 0;          // begin of the first step
  size_t usual_begin_ = 0;    // begin of the first step if it were like the others
  Turn usual_;
  std::unordered_map<uint64_t, Turn> turns_;  // one cut turn of each kind, by its operators
};

}  // namespace

std::vector<PlaceRange> FindTrainingSteps(const OperatorSequence& sequence) {
  return TrainingSteps(sequence).Find();
}

}  // namespace acltape::analyzer
