// Compares two recorded programs as an experiment of a bisection. Program A counts as right. An
// element is a call of A whose form differs in program B. An altered element is executed in the
// form that B has (exchange.h).
//
// A call can also have the same form on both sides and differ only in the calls that it reads from,
// for example because B inserts a cast before it. All calls that differ by the same unpaired calls
// are one element, so that an inserted call and all its readers are altered together.
//
// A set of altered elements is bad if a result of the step differs from the result with nothing
// altered. Normally the bits must be equal. If B has other element types in the step, a result is
// bad only if its error exceeds ten times the rounding of the coarsest of these types and the
// standard "ascend" rejects it too.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "analyzer/metrics/standard.h"
#include "meaning/command_change.h"
#include "replayer/against/exchange.h"
#include "replayer/script/experiment.h"

namespace acltape::replayer::against {

// The results of one pair of calls, or group of calls, that were executed on recorded values on
// this device.
struct PairFacts {
  size_t row = 0;  // index in the diff
  bool element = false;
  // True if the side reproduces its recorded bits; nothing if no result was recorded.
  std::optional<bool> a_reproduces;
  std::optional<bool> b_reproduces;
  // True if B's form gives the same result as A's form, both on A's recorded values. Nothing if the
  // row cannot be exchanged.
  std::optional<bool> same_result;
  double error = 0;       // relative L2 error of the worst result
  std::string why_not;    // the reason why it cannot be exchanged; else empty
  bool random = false;    // the result in B is recorded random numbers
  bool received = false;  // the result in B is what other ranks sent
  // Calls without a counterpart in the other program. In A: calls that the row reads from. In B:
  // calls that the row needs in addition.
  std::vector<int64_t> only_a;
  std::vector<int64_t> only_b;
  // Earlier rows that take B's form with this one, because their results have other shapes in A.
  std::vector<size_t> joined;
  // The call of A whose row takes this one along in that way; -1: none.
  int64_t joined_to = -1;
};

class AgainstExperiment final : public script::Experiment {
 public:
  // `may_alter` selects the calls of A that may be altered; null selects all. `command` is a
  // bisection of the step, which an experiment is when the calls of A are named.
  AgainstExperiment(Exchange& exchange, const std::function<bool(int64_t call)>& may_alter,
                    meaning::GivenCommand command);

  // The facts of every pair that differs in form, element type or recorded result, in order.
  const std::vector<PairFacts>& facts() const { return facts_; }
  // Returns the first call of A that an element alters. If a row has several calls, it counts by
  // the one that gives its results.
  int64_t CallOf(size_t element) const;
  bool rounds() const { return rounding_ > 0; }
  // Returns how much of the step its results tell of. A pair that cannot be exchanged counts as one
  // of which they tell nothing.
  analyzer::Coverage Coverage() const;

  size_t size() const override { return elements_.size(); }
  std::string Describe(size_t element) const override;
  script::Outcome Try(const script::ElementSet& altered) override;
  std::string Command(const script::ElementSet& altered) const override;

 private:
  PairFacts FactsOf(size_t row);
  void MarkJoined();
  std::vector<int64_t> CallsOf(size_t element) const;
  std::string DescribeJoined(const PairFacts& facts) const;
  void AddElement(size_t fact);
  bool SameForm(const PairFacts& facts) const;
  // Returns a JSON object that describes the first result that differs; empty if none does.
  std::string Compare(const Exchange::Values& values) const;

  Exchange& exchange_;
  const meaning::GivenCommand command_;
  std::vector<PairFacts> facts_;
  std::vector<std::vector<size_t>> elements_;  // indices in facts_
  std::vector<ResultPlace> outputs_;
  // Rounding of the coarsest element type among calls whose element type differs in B.
  double rounding_ = 0;
  analyzer::metrics::Standard tolerant_;
  Exchange::Values reference_;
};

}  // namespace acltape::replayer::against
