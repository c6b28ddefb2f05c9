#include "replayer/bisect/search.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "replayer/bisect/delta_debugging.h"
#include "replayer/bisect/element_text.h"

namespace acltape::replayer::bisect {
namespace {

using Answer = Trials::Answer;

// Searches one cause among `active`. These elements are in order, and all of them together fail.
class CauseSearch {
 public:
  CauseSearch(Trials& trials, script::ElementSet active, SearchResult& result)
      : trials_(trials), active_(std::move(active)), result_(result) {}

  // If BudgetSpent is thrown, cause() holds the cause as far as it is known.
  void Run(SearchMethod method) {
    cause_.elements = active_;
    if (method == SearchMethod::kDeltaDebugging) {
      cause_.first_guess = active_.back();
      Reduce();
      cause_.minimal = true;
      return;
    }
    if (!FindByPrefixes() || !VerifyMinimal()) {
      cause_.monotonic = false;
      Reduce();
    }
    cause_.minimal = true;
  }

  Cause& cause() { return cause_; }

 private:
  bool Fails(const script::ElementSet& set) { return trials_.Ask(set) == Answer::kFails; }

  script::ElementSet Prefix(size_t length) const {
    return {active_.begin(), active_.begin() + static_cast<std::ptrdiff_t>(length)};
  }

  // Returns the smallest length in (low, high] at which the prefix fails together with `found`.
  // Precondition: it fails at `high` and not at `low`. Returns nothing if no length in between can
  // be judged.
  std::optional<size_t> SmallestPrefix(size_t low, size_t high, const script::ElementSet& found) {
    while (high - low > 1) {
      trials_.SetExpected(CeilLog2(high - low) + 1);
      const std::optional<size_t> probe = Probe(low, high, found);
      if (!probe) return std::nullopt;
      const script::ElementSet set = UnionOf(Prefix(*probe), found);
      if (Fails(set)) {
        high = *probe;
        cause_.elements = set;
      } else {
        low = *probe;
      }
      if (found.empty()) {
        result_.suspects_first = active_[low];
        result_.suspects_end = active_[high - 1] + 1;
      }
    }
    return high;
  }

  // Returns a length between `low` and `high` that can be judged, as near to the middle as
  // possible.
  std::optional<size_t> Probe(size_t low, size_t high, const script::ElementSet& found) {
    const size_t middle = low + (high - low) / 2;
    for (size_t distance = 0; distance < high - low; distance = distance * 2 + 1) {
      for (const size_t length : {middle - distance, middle + distance}) {
        if (length <= low || length >= high || length > high) continue;
        if (trials_.Ask(UnionOf(Prefix(length), found)) != Answer::kCannotJudge) return length;
      }
    }
    return std::nullopt;
  }

  // Returns false if something could not be judged or outcomes contradict each other.
  bool FindByPrefixes() {
    script::ElementSet found;
    for (size_t end = active_.size();;) {
      const std::optional<size_t> length = SmallestPrefix(0, end, found);
      if (!length) return false;
      const size_t element = active_[*length - 1];
      if (found.empty()) cause_.first_guess = element;
      found = UnionOf(found, {element});
      trials_.SetExpected(1);
      const Answer answer = trials_.Ask(found);
      if (cause_.to_first_guess == 0) cause_.to_first_guess = trials_.experiments();
      if (answer == Answer::kFails) {
        cause_.elements = found;
        return true;
      }
      // No element is left that could be a partner, so the outcomes contradict each other.
      if (answer == Answer::kCannotJudge || *length == 1) return false;
      end = *length - 1;
    }
  }

  // Returns true if no set with one element less fails. If one fails, keeps that set.
  bool VerifyMinimal() {
    if (cause_.elements.size() < 2) return true;
    for (const size_t element : cause_.elements) {
      const script::ElementSet less = Without(cause_.elements, {element});
      if (!Fails(less)) continue;
      cause_.elements = less;
      cause_.monotonic = false;
      return less.size() == 1;
    }
    return true;
  }

  void Reduce() {
    cause_.elements = MinimizeByDeltaDebugging(cause_.elements, [&](const script::ElementSet& set) {
      trials_.SetExpected(2 * CeilLog2(set.size()) + 2);
      const bool fails = Fails(set);
      if (fails && set.size() < cause_.elements.size()) cause_.elements = set;
      return fails;
    });
    if (cause_.to_first_guess == 0) cause_.to_first_guess = trials_.experiments();
  }

  Trials& trials_;
  const script::ElementSet active_;
  SearchResult& result_;
  Cause cause_;
};

class Search {
 public:
  Search(Trials& trials, size_t elements, const SearchOptions& options)
      : trials_(trials), all_(AllElements(elements)), options_(options) {}

  SearchResult Run(bool search) {
    result_.suspects_end = all_.size();
    try {
      trials_.SetExpected(BoundForOne(all_.size()));
      if (BothEndsAsExpected()) {
        result_.verdict = Verdict::kFound;
        if (search) FindAll();
      }
    } catch (const BudgetSpent&) {
      result_.complete = false;
      if (result_.causes.empty()) result_.verdict = SearchResult::Verdict::kOutOfTime;
    }
    result_.reference = trials_.Known({});
    result_.altered = trials_.Known(all_);
    result_.varies = trials_.varies();
    result_.rate = trials_.rate();
    result_.executions = trials_.executions_needed();
    result_.error = trials_.error_of_answer();
    trials_.SetExpected(0);
    return result_;
  }

 private:
  using Verdict = SearchResult::Verdict;

  bool End(Verdict verdict) {
    result_.verdict = verdict;
    return false;
  }

  // The reference fails. Finds out if it always fails or only sometimes.
  bool JudgeReference() {
    const script::Outcome reference = trials_.Sample({}, options_.executions_of_flaky, INT64_MAX);
    const bool flaky = reference.verdict == script::Outcome::Verdict::kUnstable ||
                       reference.bad_executions < reference.executions;
    return End(flaky ? Verdict::kFlakyReference : Verdict::kReferenceDiffers);
  }

  bool BothEndsAsExpected() {
    const Answer reference = trials_.Ask({});
    if (reference == Answer::kCannotJudge) return End(Verdict::kCannotJudge);
    if (reference == Answer::kFails) return JudgeReference();
    if (all_.empty()) return End(Verdict::kNothing);
    const Answer altered = trials_.Ask(all_);
    if (altered == Answer::kCannotJudge) return End(Verdict::kCannotJudge);
    if (altered == Answer::kClean) return End(Verdict::kNothing);
    return ReferenceHolds();
  }

  // A program that fails only sometimes may also fail with nothing altered. So the reference is
  // executed again, as often as a clean set must be.
  bool ReferenceHolds() {
    if (!trials_.varies()) return true;
    return trials_.Ask({}) == Answer::kFails ? JudgeReference() : true;
  }

  void FindAll() {
    script::ElementSet active = all_;
    while (static_cast<int>(result_.causes.size()) < options_.causes) {
      CauseSearch search(trials_, active, result_);
      const auto keep = [&] {
        Cause& cause = search.cause();
        cause.outcome = trials_.Known(cause.elements);
        cause.experiments = trials_.experiments();
        result_.causes.push_back(cause);
      };
      try {
        search.Run(options_.method);
      } catch (const BudgetSpent&) {
        keep();
        throw;
      }
      keep();
      if (!ReferenceHolds()) {
        result_.causes.clear();
        return;
      }
      active = Without(active, result_.causes.back().elements);
      if (static_cast<int>(result_.causes.size()) == options_.causes || active.empty()) return;
      if (trials_.Ask(active) != Answer::kFails) return;
    }
  }

  Trials& trials_;
  const script::ElementSet all_;
  const SearchOptions& options_;
  SearchResult result_;
};

}  // namespace

int64_t CeilLog2(size_t n) { return n < 2 ? 0 : static_cast<int64_t>(std::bit_width(n - 1)); }

int64_t BoundForOne(size_t elements) { return CeilLog2(elements) + 3; }

int64_t BoundFor(size_t elements, size_t k) {
  const auto parts = static_cast<int64_t>(k);
  // The sum counts both ends, then a search and one more question for each element. With several
  // elements it also counts the questions that verify that no element can be left out; the last of
  // these was already asked.
  return 2 + parts * (CeilLog2(elements) + 1) + (parts > 1 ? parts : 0);
}

SearchResult FindCauses(Trials& trials, size_t elements, const SearchOptions& options) {
  return Search(trials, elements, options).Run(true);
}

SearchResult JudgeEnds(Trials& trials, size_t elements, const SearchOptions& options) {
  return Search(trials, elements, options).Run(false);
}

}  // namespace acltape::replayer::bisect
