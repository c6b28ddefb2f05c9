#include "replayer/comparison_log.h"

#include <cmath>
#include <nlohmann/json.hpp>

namespace acltape::replayer {
namespace {

std::string MetricsText(const Difference& difference) {
  const auto number = [](double value) -> nlohmann::json {
    if (std::isfinite(value)) return value;
    return value > 0 ? "inf" : "nan";
  };
  nlohmann::json metrics;
  metrics["elements"] = difference.elements;
  metrics["differing"] = difference.differing;
  metrics["first_index"] = difference.first_index;
  metrics["expected"] = difference.expected;
  metrics["actual"] = difference.actual;
  metrics["max_abs"] = number(difference.max_abs);
  metrics["max_rel"] = number(difference.max_rel);
  metrics["max_ulp"] = difference.max_ulp;
  metrics["nan_expected"] = difference.nan_expected;
  metrics["nan_actual"] = difference.nan_actual;
  return metrics.dump();
}

}  // namespace

void ComparisonLog::Note(const ComparedOutput& output, const Difference* difference,
                         bool digest_only) {
  ++report_.compared;
  const bool equal = difference == nullptr;
  ++(equal ? report_.equal : report_.differing);
  if (results_ != nullptr && (!equal || options_.keep_matches)) {
    storage::Comparison row;
    row.run_id = run_id_;
    if (output.step >= 0) row.step = output.step;
    row.call_id = output.call_id;
    row.position = output.position;
    row.verdict = equal ? "equal" : "different";
    if (!equal && !digest_only) row.metrics = MetricsText(*difference);
    results_->AddComparison(row);
  }
  if (!equal) report_.differing_calls.insert(output.call_id);
  if (equal || static_cast<int64_t>(report_.mismatches.size()) >= options_.mismatch_limit) return;
  Mismatch mismatch;
  mismatch.call_id = output.call_id;
  mismatch.op = output.op;
  mismatch.position = output.position;
  mismatch.name = output.name;
  mismatch.step = output.step;
  mismatch.reference = output.reference;
  mismatch.digest_only = digest_only;
  mismatch.difference = *difference;
  report_.mismatches.push_back(std::move(mismatch));
}

}  // namespace acltape::replayer
