// How often must something that fails only now and then be run before "it did not fail" means
// something?
#pragma once

#include <cstdint>

namespace acltape::replayer {

// The least rate of failure that `failures` in `executions` leave possible: lower end of the exact
// (Clopper and Pearson, Biometrika 1934) one-sided interval of confidence 1 - `doubt`. 0 without a
// failure. Preconditions: 0 <= failures <= executions, 0 < doubt < 1.
double LeastRate(int64_t failures, int64_t executions, double doubt);

// Executions without a failure after which a rate of at least `rate` has stayed hidden with a
// probability of at most `error`. INT64_MAX for a rate of 0.
int64_t ExecutionsToTrust(double rate, double error);

}  // namespace acltape::replayer
