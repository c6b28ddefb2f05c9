#include "replayer/values/comparison_log.h"

#include <nlohmann/json.hpp>

namespace acltape::replayer {
namespace {

using Verdict = ComparisonOutcome::Verdict;

constexpr int64_t ReplayReport::*kCounts[] = {&ReplayReport::equal, &ReplayReport::within,
                                              &ReplayReport::noise, &ReplayReport::differing};

// The names of a precision standard, and "noise" for what differs as much between two equal runs.
std::string_view NameOf(Verdict verdict) {
  using Judged = analyzer::metrics::Judgement::Verdict;
  using analyzer::metrics::VerdictName;
  switch (verdict) {
    case Verdict::kEqual:
      return VerdictName(Judged::kEqual);
    case Verdict::kWithin:
      return VerdictName(Judged::kWithin);
    case Verdict::kDifferent:
      return VerdictName(Judged::kDifferent);
    case Verdict::kNoise:
      break;
  }
  return "noise";
}

// Returns the metrics as JSON, with the reason of the verdict.
std::string MetricsText(const ComparisonOutcome& outcome) {
  nlohmann::json metrics = nlohmann::json::object();
  if (!outcome.digest_only)
    metrics = nlohmann::json::parse(analyzer::metrics::MetricsJson(outcome.metrics));
  if (!outcome.reason.empty()) metrics["reason"] = outcome.reason;
  return metrics.dump();
}

}  // namespace

ComparisonLog::ComparisonLog(const ReplayOptions& options, ReplayReport& report)
    : options_(options),
      standard_(options.standard ? *options.standard : analyzer::metrics::Standard()),
      report_(report) {}

ComparisonOutcome ComparisonLog::Judge(const std::string& op, storage::DType dtype,
                                       const uint8_t* expected, const uint8_t* actual,
                                       int64_t elements) const {
  using analyzer::metrics::Judgement;
  ComparisonOutcome outcome;
  const Judgement judgement =
      standard_.Compare(op, dtype, expected, dtype, actual, elements, &outcome.metrics);
  outcome.reason = judgement.reason;
  outcome.verdict = judgement.verdict == Judgement::Verdict::kEqual    ? Verdict::kEqual
                    : judgement.verdict == Judgement::Verdict::kWithin ? Verdict::kWithin
                                                                       : Verdict::kDifferent;
  return outcome;
}

ComparisonOutcome ComparisonLog::OtherDigest(int64_t elements) {
  ComparisonOutcome outcome;
  outcome.verdict = Verdict::kDifferent;
  outcome.digest_only = true;
  outcome.metrics.elements = elements;
  return outcome;
}

void ComparisonLog::Note(const ComparedOutput& output, const ComparisonOutcome& outcome) {
  ++report_.compared;
  report_.compared_calls.insert(output.call_id);
  ++(report_.*kCounts[static_cast<int>(outcome.verdict)]);
  const bool equal = outcome.verdict == Verdict::kEqual;
  if (results_ != nullptr && (!equal || options_.keep_matches)) {
    storage::Comparison row;
    row.run_id = run_id_;
    if (output.step >= 0) row.step = output.step;
    row.call_id = output.call_id;
    row.position = output.position;
    row.verdict = NameOf(outcome.verdict);
    if (!equal) row.metrics = MetricsText(outcome);
    results_->AddComparison(row);
  }
  if (outcome.verdict != Verdict::kDifferent) return;
  report_.differing_calls.insert(output.call_id);
  if (static_cast<int64_t>(report_.mismatches.size()) >= options_.mismatch_limit) return;
  Mismatch mismatch;
  mismatch.call_id = output.call_id;
  mismatch.op = output.op;
  mismatch.position = output.position;
  mismatch.name = output.name;
  mismatch.step = output.step;
  mismatch.reference = output.reference;
  mismatch.digest_only = outcome.digest_only;
  mismatch.metrics = outcome.metrics;
  mismatch.reason = outcome.reason;
  report_.mismatches.push_back(std::move(mismatch));
}

}  // namespace acltape::replayer
