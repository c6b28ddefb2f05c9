// Seeds of random numbers that an operator by name draws, where the program gives none.
#pragma once

#include <atomic>
#include <cstdint>

namespace acltape::device {

// The calls without a seed take the seeds 1, 2, 3, ..., so that each run of a program draws the
// same. A captured call keeps its seed: each execution of the graph draws the same.
inline int64_t SeedOfThisCall() {
  static std::atomic<int64_t> calls{0};
  return ++calls;
}

}  // namespace acltape::device
