// Two recorded programs as an experiment of a bisection: A is right, elements are the calls whose
// form in B is another one, and altered ones take B's form (exchange.h).
//
// Calls of one form on both sides that differ in what they read from are one element when the same
// calls without a counterpart stand before them: an inserted call is an element with all who use
// it.
//
// A set is bad when a result of the step is not what it is with nothing altered: other bits, or,
// where calls of the step have other element types in B, an error beyond ten times the rounding of
// the coarsest of them and beyond the standard "ascend".
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "analyzer/metrics/standard.h"
#include "replayer/against/exchange.h"
#include "replayer/bisect/experiment.h"

namespace acltape::replayer {

// What one pair of calls, or group of calls, does on recorded values on this device.
struct PairFacts {
  size_t row = 0;  // of the diff
  bool element = false;
  // Whether each side gives the bits that were recorded of it; nothing without such a record.
  std::optional<bool> a_reproduces;
  std::optional<bool> b_reproduces;
  // B's form on A's recorded values against A's form on them; nothing when it is not exchangeable.
  std::optional<bool> same_result;
  double error = 0;     // relative, L2, of the worst result
  std::string why_not;  // not exchangeable
  bool random = false;  // the result is B's random numbers, as recorded
  // Calls without a counterpart that the row reads from in A, and needs besides in B.
  std::vector<int64_t> only_a;
  std::vector<int64_t> only_b;
};

class AgainstExperiment final : public Experiment {
 public:
  // `may_alter` picks by call of A; null: all. `command` with the calls of A in the place of the
  // last argument makes an experiment again.
  AgainstExperiment(Exchange& exchange, const std::function<bool(int64_t call)>& may_alter,
                    std::string command);

  // Of every pair that is not identical in form, wiring and record, in order.
  const std::vector<PairFacts>& facts() const { return facts_; }
  // The call of A that gives the results of an element; of several the first.
  int64_t CallOf(size_t element) const;
  bool rounds() const { return rounding_ > 0; }

  size_t size() const override { return elements_.size(); }
  std::string Describe(size_t element) const override;
  Outcome Try(const ElementSet& altered) override;
  std::string Command(const ElementSet& altered) const override;

 private:
  PairFacts FactsOf(size_t row);
  void AddElement(size_t fact);
  bool SameForm(const PairFacts& facts) const;
  // The worst difference of a result; nothing when none is one.
  std::string Compare(const Exchange::Values& values) const;

  Exchange& exchange_;
  const std::string command_;
  std::vector<PairFacts> facts_;
  std::vector<std::vector<size_t>> elements_;  // in facts_
  std::vector<ResultPlace> outputs_;
  double rounding_ = 0;  // of the coarsest element type of a call that has another one in B
  analyzer::Standard tolerant_;
  Exchange::Values reference_;
};

}  // namespace acltape::replayer
