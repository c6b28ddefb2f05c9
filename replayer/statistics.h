// Medians with distribution-free confidence intervals.
#pragma once

#include <vector>

#include "replayer/compare.h"

namespace acltape::replayer {

// The interval lies between two order statistics whose ranks come from the binomial distribution
// with p = 1/2 (Conover, Practical Nonparametric Statistics, section 3.2). With too few samples for
// the wanted confidence it is the range of all of them.
Estimate MedianOf(std::vector<double> samples, double confidence);

}  // namespace acltape::replayer
