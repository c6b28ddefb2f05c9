// Answers "does it fail with these elements altered?" once and for all: asks the journal before the
// device, repeats experiments whose outcome varies until the answer can be trusted, and keeps time.
//
// As long as outcomes repeat, one experiment answers. Once one has varied, the rate at which it
// fails is measured first; a set then counts as clean only after so many executions without a
// failure that one which fails at least at half the least rate that the measurement leaves possible
// (95 % confidence) would have shown, but for the stated error, which is shared out among the
// questions of a search.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "replayer/bisect/experiment.h"
#include "replayer/bisect/journal.h"

namespace acltape::replayer {

struct TrialOptions {
  double error_bound = 1e-3;       // that any answer of a search in which outcomes vary is wrong
  int executions = 1;              // least of a trial, whatever it shows
  int64_t most_executions = 2000;  // of one trial; past it the answer is given all the same
  std::optional<std::chrono::steady_clock::time_point> deadline;
  // Called before each experiment: made so far, and expected in all.
  std::function<void(int64_t made, int64_t expected)> progress;
};

// The time budget is spent.
struct BudgetSpent {};

class Trials {
 public:
  enum class Answer { kClean, kFails, kCannotJudge };

  // `journal` may be null. `name` marks the experiments in the journal.
  Trials(Experiment& experiment, TrialOptions options, Journal* journal,
         std::string name = "search");

  // Throws BudgetSpent, and what the experiment throws.
  Answer Ask(const ElementSet& altered);
  // What is known of a set, all its experiments together; executions is 0 when it was never asked.
  Outcome Known(const ElementSet& altered) const;
  // Runs the set until `executions` are reached or `failures` seen. For rates.
  Outcome Sample(const ElementSet& altered, int64_t executions, int64_t failures);
  // Measures the rate at which a set that fails now and then fails; answers depend on it from here
  // on.
  void MeasureRate(const ElementSet& altered);

  // Some set has failed in one execution and not in another, or failed in different ways.
  bool varies() const { return varies_; }
  // Executions that a set needs to count as clean.
  int64_t executions_needed() const { return needed_; }
  double rate() const { return rate_; }              // of failure as measured; 1 unless it varies
  double error_of_answer() const { return error_; }  // that holds; 0 while outcomes do not vary

  int64_t sets() const { return static_cast<int64_t>(known_.size()); }  // different ones asked
  int64_t experiments() const { return experiments_; }                  // in all, repeats included
  int64_t from_journal() const { return from_journal_; }                // of those

  // Questions that the search will still ask, at most: for progress and for sharing the error.
  void SetExpected(int64_t questions) { expected_ = questions; }

 private:
  void Make(const ElementSet& altered);

  Experiment& experiment_;
  const TrialOptions options_;
  Journal* journal_;
  const std::string name_;
  std::map<ElementSet, Outcome> known_;
  bool varies_ = false;
  bool measured_ = false;
  int64_t needed_ = 1;
  double rate_ = 1;
  double error_ = 0;
  int64_t expected_ = 0;
  int64_t experiments_ = 0;
  int64_t from_journal_ = 0;
};

}  // namespace acltape::replayer
