#include "replayer/bisect/trials.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "replayer/bisect/confidence.h"

namespace acltape::replayer::bisect {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double kDoubtOfRate = 0.05;
// A rate is measured until this many failures are seen or this many executions are made.
constexpr int64_t kFailuresForRate = 10;
constexpr int64_t kExecutionsForRate = 200;
// The allowed error is shared among at least this many questions.
constexpr int64_t kLeastShares = 8;

bool Fails(const script::Outcome& outcome) {
  return outcome.verdict == script::Outcome::Verdict::kBad ||
         outcome.verdict == script::Outcome::Verdict::kUnstable;
}

// Combines two outcomes of one set.
script::Outcome Together(const script::Outcome& a, const script::Outcome& b, bool& varies) {
  script::Outcome both = Fails(a) || !Fails(b) ? a : b;
  both.executions = a.executions + b.executions;
  both.bad_executions = a.bad_executions + b.bad_executions;
  if (Fails(a) != Fails(b) || (Fails(a) && a.fingerprint != b.fingerprint)) {
    both.verdict = script::Outcome::Verdict::kUnstable;
    varies = true;
  }
  return both;
}

}  // namespace

Trials::Trials(script::Experiment& experiment, TrialOptions options, Journal* journal,
               std::string name)
    : experiment_(experiment),
      options_(std::move(options)),
      journal_(journal),
      name_(std::move(name)) {}

script::Outcome Trials::Known(const script::ElementSet& altered) const {
  const auto found = known_.find(altered);
  return found == known_.end() ? script::Outcome{} : found->second;
}

void Trials::Make(const script::ElementSet& altered) {
  std::optional<script::Outcome> outcome;
  if (journal_ != nullptr) outcome = journal_->Take(name_, altered);
  if (outcome) {
    ++from_journal_;
    experiment_.Recall(altered, *outcome);
  } else {
    if (options_.deadline && Clock::now() >= *options_.deadline) throw BudgetSpent();
    if (options_.progress) options_.progress(experiments_, experiments_ + expected_);
    const Clock::time_point begin = Clock::now();
    outcome = experiment_.Try(altered);
    if (journal_ != nullptr) {
      journal_->Append(name_, altered, *outcome,
                       std::chrono::duration<double>(Clock::now() - begin).count());
    }
  }
  ++experiments_;
  expected_ = std::max<int64_t>(0, expected_ - 1);
  if (outcome->verdict == script::Outcome::Verdict::kUnstable) varies_ = true;
  const auto [entry, is_new] = known_.try_emplace(altered, *outcome);
  script::Outcome& known = entry->second;
  if (outcome->verdict == script::Outcome::Verdict::kCannotJudge) {
    if (!Fails(known)) known.verdict = script::Outcome::Verdict::kCannotJudge;
    return;
  }
  outcome->executions = std::max(1, outcome->executions);
  if (Fails(*outcome)) outcome->bad_executions = std::max(1, outcome->bad_executions);
  known = is_new ? *outcome : Together(known, *outcome, varies_);
}

script::Outcome Trials::Sample(const script::ElementSet& altered, int64_t executions,
                               int64_t failures) {
  for (script::Outcome known = Known(altered);; known = Known(altered)) {
    if (known.verdict == script::Outcome::Verdict::kCannotJudge) return known;
    if (known.executions >= executions || known.bad_executions >= failures) return known;
    Make(altered);
  }
}

void Trials::MeasureRate(const script::ElementSet& altered) {
  const script::Outcome known = Sample(altered, kExecutionsForRate, kFailuresForRate);
  if (known.bad_executions == 0) return;
  measured_ = true;
  rate_ = static_cast<double>(known.bad_executions) / static_cast<double>(known.executions);
  // The rate is halved because a smaller set may fail less often.
  const double least = LeastRate(known.bad_executions, known.executions, kDoubtOfRate) / 2;
  const auto shares = static_cast<double>(std::max(kLeastShares, expected_));
  needed_ = std::clamp<int64_t>(ExecutionsToTrust(least, options_.error_bound / shares), 1,
                                options_.most_executions);
  error_ = std::min(1.0, shares * std::pow(1 - least, static_cast<double>(needed_)));
}

Trials::Answer Trials::Ask(const script::ElementSet& altered) {
  script::Outcome known = Known(altered);
  if (known.executions == 0 && known.verdict != script::Outcome::Verdict::kCannotJudge) {
    Make(altered);
    known = Known(altered);
  }
  if (known.verdict == script::Outcome::Verdict::kCannotJudge) return Answer::kCannotJudge;
  known = Sample(altered, options_.executions, INT64_MAX);
  if (Fails(known)) {
    if (varies_ && !measured_ && !altered.empty()) MeasureRate(altered);
    return Answer::kFails;
  }
  known = Sample(altered, needed_, 1);
  return Fails(known) ? Answer::kFails : Answer::kClean;
}

}  // namespace acltape::replayer::bisect
