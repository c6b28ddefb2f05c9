// Answers the question if a program fails with these elements altered. It asks the journal before
// the device, repeats experiments whose outcome varies until the answer can be trusted, and keeps
// track of time.
//
// While all outcomes repeat, one experiment is enough for an answer. Once an outcome varies, the
// rate of failure is measured. Its lowest plausible value (95 % confidence) is halved, because a
// smaller set may fail less often. A set then counts as clean only after so many executions without
// a failure that a program which fails at this rate would have shown it, except with the allowed
// probability of error. That probability is shared among the questions of a search.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "replayer/bisect/journal.h"
#include "replayer/script/experiment.h"

namespace acltape::replayer::bisect {

struct TrialOptions {
  // Allowed probability that any answer of a search is wrong, if outcomes vary.
  double error_bound = 1e-3;
  int executions = 1;              // least executions of a set
  int64_t most_executions = 2000;  // most executions of a set; then it counts as clean
  std::optional<std::chrono::steady_clock::time_point> deadline;
  // Called before each experiment with the number made so far and the number expected in all.
  std::function<void(int64_t made, int64_t expected)> progress;
};

// Thrown when the time budget is spent.
struct BudgetSpent {};

class Trials {
 public:
  enum class Answer { kClean, kFails, kCannotJudge };

  // `journal` may be null. `name` marks the experiments in the journal.
  Trials(script::Experiment& experiment, TrialOptions options, Journal* journal,
         std::string name = "search");

  // Throws BudgetSpent, and what the experiment throws.
  Answer Ask(const script::ElementSet& altered);
  // Returns the outcome of all experiments of a set together. `executions` is 0 if there were none.
  script::Outcome Known(const script::ElementSet& altered) const;
  // Runs the set until `executions` are made or `failures` are seen, to measure a rate.
  script::Outcome Sample(const script::ElementSet& altered, int64_t executions, int64_t failures);
  // Measures the rate of failure of a set that fails only sometimes. Later answers depend on this
  // rate.
  void MeasureRate(const script::ElementSet& altered);

  // True if some set has failed in one execution and not in another, or has failed in different
  // ways.
  bool varies() const { return varies_; }
  // Number of executions without a failure that a set needs to count as clean.
  int64_t executions_needed() const { return needed_; }
  double rate() const { return rate_; }  // measured rate of failure; 1 if outcomes do not vary
  double error_of_answer() const { return error_; }  // reached; 0 while outcomes do not vary

  int64_t sets() const { return static_cast<int64_t>(known_.size()); }  // different sets
  int64_t experiments() const { return experiments_; }                  // with repetitions
  int64_t from_journal() const {
    return from_journal_;
  }  // experiments whose outcomes were in the journal

  // Most questions that the search will still ask. They are used for progress and for sharing the
  // error.
  void SetExpected(int64_t questions) { expected_ = questions; }

 private:
  void Make(const script::ElementSet& altered);

  script::Experiment& experiment_;
  const TrialOptions options_;
  Journal* journal_;
  const std::string name_;
  std::map<script::ElementSet, script::Outcome> known_;
  bool varies_ = false;
  bool measured_ = false;
  int64_t needed_ = 1;
  double rate_ = 1;
  double error_ = 0;
  int64_t expected_ = 0;
  int64_t experiments_ = 0;
  int64_t from_journal_ = 0;
};

}  // namespace acltape::replayer::bisect
