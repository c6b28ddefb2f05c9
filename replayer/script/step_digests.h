// Executions of a step as digests of its outputs. The functions find the usual execution, and the
// outputs that vary.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace acltape::replayer::script {

// The digests of one step, one for each output.
using StepDigests = std::vector<std::string>;

// Returns one digest over `count` steps, beginning with step `first`.
std::string DigestOfSteps(const std::vector<StepDigests>& steps, size_t first, size_t count);

// Returns the most frequent of the elements first, first + stride, first + 2 * stride and so on. If
// several are equally frequent, returns the first of them.
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
  int different = 0;   // executions that differ from the usual one
  int executions = 0;  // executions in which no earlier output differed
};
// `rounds` are executions of one step with equal inputs; outputs are in program order. A round
// counts only up to its first output that differs, because later calls had other inputs.
std::vector<UnsteadyOutput> FindUnsteadyOutputs(const std::vector<StepDigests>& rounds);

}  // namespace acltape::replayer::script
