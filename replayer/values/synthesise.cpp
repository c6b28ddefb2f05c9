#include "replayer/values/synthesise.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

namespace acltape::replayer {
namespace {

using storage::DType;
using storage::Statistics;

// Rounds towards zero, so that a number between two others of the type stays between them.
uint16_t BfloatOf(double value) {
  const auto narrow = static_cast<float>(value);
  uint32_t bits;
  std::memcpy(&bits, &narrow, sizeof bits);
  return static_cast<uint16_t>(std::isnan(value) ? 0x7fc0 : bits >> 16);
}

uint16_t HalfOf(double value) {
  const auto sign = static_cast<uint16_t>(std::signbit(value) ? 0x8000 : 0);
  if (std::isnan(value)) return 0x7e00;
  if (std::isinf(value)) return static_cast<uint16_t>(sign | 0x7c00);
  int exponent = 0;
  const double fraction = std::frexp(std::fabs(value), &exponent);  // [0.5, 1)
  if (value == 0) return sign;
  if (exponent > 16) return static_cast<uint16_t>(sign | 0x7bff);
  if (exponent < -13) {  // subnormal: multiples of 2^-24
    return static_cast<uint16_t>(sign | static_cast<uint16_t>(std::ldexp(fraction, exponent + 24)));
  }
  const auto mantissa = static_cast<uint16_t>(std::ldexp(fraction, 11)) & 0x3ff;
  return static_cast<uint16_t>(sign | ((exponent + 14) << 10) | mantissa);
}

// Draws numbers with the mean and the range of the statistics. A number lies below the mean with
// the probability that gives this mean, and numbers are spread evenly on each side.
class Numbers {
 public:
  Numbers(uint64_t seed, const Statistics* statistics) : random_(seed), statistics_(statistics) {}

  double Next(int64_t index, int64_t count) {
    std::uniform_real_distribution<double> uniform(0, 1);
    if (statistics_ == nullptr) return 2 * uniform(random_) - 1;
    const Statistics& s = *statistics_;
    if (index < s.nan_count) return std::numeric_limits<double>::quiet_NaN();
    if (index < s.nan_count + s.inf_count) return -std::numeric_limits<double>::infinity();
    // The smallest and the largest number occur exactly.
    if (index == s.nan_count + s.inf_count) return s.min;
    if (index == count - 1) return s.max;
    if (s.max <= s.min) return s.min;
    const double mean = std::clamp(s.mean, s.min, s.max);
    const double below = (s.max - mean) / (s.max - s.min);
    return uniform(random_) < below ? s.min + uniform(random_) * (mean - s.min)
                                    : mean + uniform(random_) * (s.max - mean);
  }
  // Draws a whole number in the range. The mean is that of the statistics.
  int64_t NextWhole(int64_t index, int64_t count) {
    std::uniform_real_distribution<double> uniform(0, 1);
    if (statistics_ == nullptr) return 0;
    const double floor = std::floor(Next(index, count) + uniform(random_));
    return static_cast<int64_t>(std::clamp(floor, statistics_->min, statistics_->max));
  }
  std::mt19937_64& random() { return random_; }

 private:
  std::mt19937_64 random_;
  const Statistics* statistics_;
};

template <typename T, typename Convert>
void Fill(std::vector<uint8_t>& content, Numbers& numbers, const Statistics* statistics,
          const Convert& convert) {
  const auto count = static_cast<int64_t>(content.size() / sizeof(T));
  std::vector<T> values(count);
  for (int64_t i = 0; i < count; ++i) values[i] = convert(numbers, i, count);
  if (statistics != nullptr) std::shuffle(values.begin(), values.end(), numbers.random());
  if (count > 0) std::memcpy(content.data(), values.data(), count * sizeof(T));
}

template <typename T>
void FillReal(std::vector<uint8_t>& content, Numbers& numbers, const Statistics* statistics) {
  Fill<T>(content, numbers, statistics,
          [](Numbers& n, int64_t i, int64_t count) { return static_cast<T>(n.Next(i, count)); });
}

template <typename T>
void FillWhole(std::vector<uint8_t>& content, Numbers& numbers, const Statistics* statistics) {
  Fill<T>(content, numbers, statistics, [](Numbers& n, int64_t i, int64_t count) {
    return static_cast<T>(n.NextWhole(i, count));
  });
}

using Filler = void (*)(std::vector<uint8_t>&, Numbers&, const Statistics*);
struct FillerRow {
  DType dtype;
  Filler fill;
};
constexpr FillerRow kFillers[] = {
    {DType::kFloat32, FillReal<float>},
    {DType::kComplex64, FillReal<float>},
    {DType::kFloat64, FillReal<double>},
    {DType::kComplex128, FillReal<double>},
    {DType::kFloat16,
     [](std::vector<uint8_t>& content, Numbers& numbers, const Statistics* statistics) {
       Fill<uint16_t>(content, numbers, statistics, [](Numbers& n, int64_t i, int64_t count) {
         return HalfOf(n.Next(i, count));
       });
     }},
    {DType::kBfloat16,
     [](std::vector<uint8_t>& content, Numbers& numbers, const Statistics* statistics) {
       Fill<uint16_t>(content, numbers, statistics, [](Numbers& n, int64_t i, int64_t count) {
         return BfloatOf(n.Next(i, count));
       });
     }},
    {DType::kBool, FillWhole<uint8_t>},
    {DType::kUint8, FillWhole<uint8_t>},
    {DType::kInt8, FillWhole<int8_t>},
    {DType::kInt16, FillWhole<int16_t>},
    {DType::kUint16, FillWhole<uint16_t>},
    {DType::kInt32, FillWhole<int32_t>},
    {DType::kUint32, FillWhole<uint32_t>},
    {DType::kInt64, FillWhole<int64_t>},
    {DType::kUint64, FillWhole<uint64_t>},
};

}  // namespace

std::vector<uint8_t> Synthesise(DType dtype, int64_t bytes, uint64_t seed,
                                const Statistics* statistics) {
  if (statistics != nullptr && statistics->dtype != dtype) statistics = nullptr;
  std::vector<uint8_t> content(bytes, uint8_t{0});
  Numbers numbers(seed, statistics);
  for (const FillerRow& row : kFillers) {
    if (row.dtype == dtype) row.fill(content, numbers, statistics);
  }
  return content;
}

}  // namespace acltape::replayer
