// Medians with distribution-free confidence intervals.
#pragma once

#include <vector>

#include "replayer/compare.h"

namespace acltape::replayer {

// Returns the median of samples. The interval lies between two order statistics, whose ranks come
// from the binomial distribution with p = 1/2 (Conover, Practical Nonparametric Statistics, section
// 3.2). If there are too few samples for the confidence, the interval is the range of all samples.
Estimate MedianOf(std::vector<double> samples, double confidence);

// The fewest samples of which the range holds the median with this confidence: 6 for 95 %.
int64_t LeastSamples(double confidence);

// The quotient of two medians. Its interval reaches from the least quotient of values in their
// intervals to the greatest. There are no samples if one of the two has none, or `below` may be 0.
Estimate QuotientOf(const Estimate& above, const Estimate& below);

}  // namespace acltape::replayer
