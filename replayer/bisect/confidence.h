// Statistics of rare failures: the number of executions without a failure after which a program may
// count as right.
#pragma once

#include <cstdint>

namespace acltape::replayer::bisect {

// Returns the lowest rate of failure that is consistent with `failures` in `executions`. It is the
// lower end of the exact one-sided interval (Clopper and Pearson, Biometrika 1934) with confidence
// 1 - `doubt`. It is 0 if there was no failure. Preconditions: 0 <= failures <= executions, 0 <
// doubt < 1.
double LeastRate(int64_t failures, int64_t executions, double doubt);

// Returns the number of executions that must pass without a failure. After them, a program that
// fails at `rate` or more often has gone unnoticed with a probability of at most `error`. INT64_MAX
// for a rate of 0.
int64_t ExecutionsToTrust(double rate, double error);

}  // namespace acltape::replayer::bisect
