// Executions of a step as digests of its outputs: which of them is the usual one, and which outputs
// differ from themselves.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace acltape::replayer {

// Of one step: a digest per output.
using StepDigests = std::vector<std::string>;

// One digest of `count` steps from `first` on.
std::string DigestOfSteps(const std::vector<StepDigests>& steps, size_t first, size_t count);

// Of every `stride`-th from `first` on; among equals the first.
template <typename T>
T MostFrequent(const std::vector<T>& all, size_t first, size_t stride) {
  std::map<T, int> times;
  const T* best = &all.at(first);
  for (size_t i = first; i < all.size(); i += stride) ++times[all[i]];
  for (size_t i = first; i < all.size(); i += stride) {
    if (times[all[i]] > times[*best]) best = &all[i];
  }
  return *best;
}

struct UnsteadyOutput {
  int output = 0;
  int different = 0;   // executions that are not as most are
  int executions = 0;  // in which no output before it was different
};
// `rounds` executed one step with equal inputs; outputs are in program order. A round counts up to
// its first output that is different: what comes behind it had other inputs.
std::vector<UnsteadyOutput> FindUnsteadyOutputs(const std::vector<StepDigests>& rounds);

}  // namespace acltape::replayer
