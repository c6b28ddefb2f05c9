// The middle of some samples. Of an even number of them two lie in the middle, and what is right
// depends on the use: their mean estimates best; the greater one is a value that was measured.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace acltape::base {

// The sample in the middle; of an even number of samples the greater one of the middle two. The
// samples are put into another order. There must be at least one.
template <typename T>
T UpperMedian(std::vector<T>& samples) {
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  std::nth_element(samples.begin(), middle, samples.end());
  return *middle;
}

// The same for samples in ascending order; of an even number the mean of the middle two. 0 when
// there are none.
inline double MedianOfSorted(const std::vector<double>& samples) {
  if (samples.empty()) return 0;
  const size_t half = samples.size() / 2;
  return samples.size() % 2 == 1 ? samples[half] : 0.5 * (samples[half - 1] + samples[half]);
}

// The median of samples in any order; of an even number the mean of the middle two. 0 when there
// are none.
inline double Median(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  return MedianOfSorted(samples);
}

// A sample that counts as many times as its weight says.
struct Weighted {
  double value = 0;
  double weight = 0;
};

// The least value at which at least half of the weight lies at or below it.
inline double WeightedMedian(std::vector<Weighted>& values) {
  std::sort(values.begin(), values.end(),
            [](const Weighted& a, const Weighted& b) { return a.value < b.value; });
  double all = 0;
  for (const Weighted& value : values) all += value.weight;
  double below = 0;
  for (const Weighted& value : values) {
    below += value.weight;
    if (2 * below >= all) return value.value;
  }
  return 0;
}

}  // namespace acltape::base
