#include "replayer/statistics.h"

#include <algorithm>
#include <cmath>

#include "base/median.h"

namespace acltape::replayer {

Estimate MedianOf(std::vector<double> samples, double confidence) {
  Estimate estimate;
  const auto n = static_cast<int64_t>(samples.size());
  estimate.samples = n;
  if (n == 0) return estimate;
  std::sort(samples.begin(), samples.end());
  estimate.median = base::MedianOfSorted(samples);
  // Find the largest rank with at most half of the remaining probability below it.
  const double tail = (1.0 - confidence) / 2.0;
  double cumulative = 0;
  int64_t rank = 0;  // 0-based rank of the lower limit
  for (int64_t k = 0; k < n / 2; ++k) {
    const double log_probability =
        std::lgamma(n + 1.0) - std::lgamma(k + 1.0) - std::lgamma(n - k + 1.0) - n * std::log(2.0);
    cumulative += std::exp(log_probability);
    if (cumulative > tail) break;
    rank = k;
  }
  estimate.low = samples[rank];
  estimate.high = samples[n - 1 - rank];
  return estimate;
}

int64_t LeastSamples(double confidence) {
  // All samples lie on one side of the median with probability 2 / 2^n.
  return 1 + static_cast<int64_t>(std::ceil(-std::log2(1.0 - confidence)));
}

Estimate QuotientOf(const Estimate& above, const Estimate& below) {
  if (above.samples == 0 || below.samples == 0 || below.low <= 0) return {};
  return {above.median / below.median, above.low / below.high, above.high / below.low,
          std::min(above.samples, below.samples)};
}

}  // namespace acltape::replayer
