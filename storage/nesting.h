// How far questions about what is around a call go up. Programs nest some dozens of calls; a trace
// from elsewhere can say anything, and without a bound such a question for each of its calls would
// take the square of their number.
#pragma once

#include <cstdint>

namespace acltape::storage {

constexpr int64_t kMostAround = 256;

}  // namespace acltape::storage
