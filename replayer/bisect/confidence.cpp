#include "replayer/bisect/confidence.h"

#include <algorithm>
#include <cmath>

namespace acltape::replayer::bisect {
namespace {

// Returns the probability of at least `failures` in `executions` at this rate of failure.
double TailAt(double rate, int64_t failures, int64_t executions) {
  double tail = 0;
  for (int64_t k = failures; k <= executions; ++k) {
    const auto n = static_cast<double>(executions);
    const auto x = static_cast<double>(k);
    tail += std::exp(std::lgamma(n + 1) - std::lgamma(x + 1) - std::lgamma(n - x + 1) +
                     x * std::log(rate) + (n - x) * std::log1p(-rate));
  }
  return tail;
}

}  // namespace

double LeastRate(int64_t failures, int64_t executions, double doubt) {
  if (failures == 0) return 0;
  if (failures == executions) return std::pow(doubt, 1.0 / static_cast<double>(executions));
  double low = 0;
  double high = static_cast<double>(failures) / static_cast<double>(executions);
  for (int i = 0; i < 60; ++i) {  // the tail grows with the rate
    const double middle = (low + high) / 2;
    (TailAt(middle, failures, executions) > doubt ? high : low) = middle;
  }
  return low;
}

int64_t ExecutionsToTrust(double rate, double error) {
  if (rate <= 0) return INT64_MAX;
  if (rate >= 1) return 1;
  const double executions = std::ceil(std::log(error) / std::log1p(-rate) - 1e-9);
  return executions > 1e15 ? INT64_MAX : std::max<int64_t>(1, static_cast<int64_t>(executions));
}

}  // namespace acltape::replayer::bisect
