#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analyzer/metrics/metrics.h"

namespace acltape::analyzer::metrics {

std::string MetricsJson(const TensorMetrics& metrics) {
  using nlohmann::json;
  // JSON has no infinities or NaN, so they become strings.
  const auto number = [](double value) -> json {
    if (std::isnan(value)) return "nan";
    if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
    return value;
  };
  const auto side = [&](const SideStatistics& statistics) {
    return json{{"nan_count", statistics.nan_count}, {"inf_count", statistics.inf_count},
                {"min", number(statistics.min)},     {"max", number(statistics.max)},
                {"mean", number(statistics.mean)},   {"norm", number(statistics.norm)}};
  };
  json object{{"elements", metrics.elements},
              {"differing", metrics.differing},
              {"first_index", metrics.first_index},
              {"expected", metrics.first_a},
              {"actual", metrics.first_b},
              {"agreeing_bits", metrics.agreeing_bits},
              {"nan_mismatches", metrics.nan_mismatches},
              {"inf_mismatches", metrics.inf_mismatches},
              {"max_abs", number(metrics.max_abs)},
              {"mean_abs", number(metrics.mean_abs)},
              {"rmse", number(metrics.rmse)},
              {"max_rel", number(metrics.max_rel)},
              {"mean_rel", number(metrics.mean_rel)},
              {"max_abs_index", metrics.max_abs_index},
              {"max_abs_or_rel", number(metrics.max_abs_or_rel)},
              {"small_value", metrics.small_value},
              {"max_rel_large", number(metrics.max_rel_large)},
              {"max_abs_small", number(metrics.max_abs_small)},
              {"max_ulp", metrics.max_ulp},
              {"cosine", number(metrics.cosine)},
              {"nmse", number(metrics.nmse)},
              {"within_hundredth", metrics.within_hundredth},
              {"within_thousandth", metrics.within_thousandth},
              {"within_ten_thousandth", metrics.within_ten_thousandth},
              {"reference", side(metrics.a)},
              {"judged", side(metrics.b)}};
  if (metrics.max_ulp >= 0) {
    object["mean_ulp"] = number(metrics.mean_ulp);
    size_t used = metrics.ulp_buckets.size();
    while (used > 1 && metrics.ulp_buckets[used - 1] == 0) --used;
    object["ulp_buckets"] =
        std::vector<int64_t>(metrics.ulp_buckets.begin(), metrics.ulp_buckets.begin() + used);
  }
  return object.dump();
}

}  // namespace acltape::analyzer::metrics
