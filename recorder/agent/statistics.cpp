#include "recorder/agent/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace acltape::agent {

namespace {

float FloatOf(uint32_t bits) {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// Exact conversions to float.
struct Bfloat16 {
  uint16_t bits;
  explicit operator float() const { return FloatOf(uint32_t{bits} << 16); }
};
struct Half {
  uint16_t bits;
  explicit operator float() const {
    const uint32_t magnitude = uint32_t{bits} & 0x7fff;
    const uint32_t sign = uint32_t{bits} >> 15 << 31;
    if (magnitude >= 0x7c00) return FloatOf(sign | 0x7f800000 | magnitude << 13);
    // The exponent's bias by a multiplication, which makes subnormal numbers normal.
    const float scaled = FloatOf(magnitude << 13) * FloatOf(0x77800000);  // 2^112
    uint32_t value;
    std::memcpy(&value, &scaled, sizeof(value));
    return FloatOf(sign | value);
  }
};

// One block's sums in float lanes; blocks are added in double.
constexpr size_t kBlock = 1024;
constexpr size_t kLanes = 16;
constexpr size_t kHalf = kLanes / 2;
typedef float Floats __attribute__((vector_size(kHalf * sizeof(float))));
typedef int32_t Bits __attribute__((vector_size(kHalf * sizeof(int32_t))));

struct BlockSums {
  float low, high, sum, square;
  bool special;  // some element is infinite or no number; the others mean nothing then
};

#if defined(__x86_64__)
__attribute__((target_clones("avx2", "default")))
#endif
BlockSums
SumBlock(const float* x, size_t count) {
  constexpr int32_t kExponent = 0x7f800000;
  const Floats zero = {};
  Floats low[2], high[2], sum[2] = {zero, zero}, square[2] = {zero, zero};
  Bits special = {};
  for (int half = 0; half < 2; ++half) {
    low[half] = zero + std::numeric_limits<float>::max();
    high[half] = zero + std::numeric_limits<float>::lowest();
  }
  for (size_t i = 0; i < count; i += kLanes) {
    for (int half = 0; half < 2; ++half) {
      Floats value;
      Bits bits;
      std::memcpy(&value, x + i + half * kHalf, sizeof(value));
      std::memcpy(&bits, &value, sizeof(bits));
      special |= (bits & kExponent) == kExponent;
      low[half] = value < low[half] ? value : low[half];
      high[half] = value > high[half] ? value : high[half];
      sum[half] += value;
      square[half] += value * value;
    }
  }
  BlockSums total{low[0][0], high[0][0], 0, 0, false};
  for (size_t lane = 0; lane < kLanes; ++lane) {
    const size_t half = lane / kHalf, place = lane % kHalf;
    total.low = std::min(total.low, low[half][place]);
    total.high = std::max(total.high, high[half][place]);
    total.sum += sum[half][place];
    total.square += square[half][place];
    total.special |= special[place] != 0;
  }
  return total;
}

struct Accumulator {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  double sum = 0;
  double square = 0;
  uint64_t nan = 0;
  uint64_t inf = 0;
  size_t count = 0;

  void AddOne(double value) {
    ++count;
    if (std::isnan(value)) {
      ++nan;
    } else if (std::isinf(value)) {
      ++inf;
    } else {
      low = std::min(low, value);
      high = std::max(high, value);
      sum += value;
      square += value * value;
    }
  }
  void AddBlock(const float* x, size_t n) {
    const BlockSums block = SumBlock(x, n);
    // Squares of large finite numbers overflow in float; such blocks are summed one by one.
    if (block.special || !std::isfinite(block.square) || !std::isfinite(block.sum)) {
      for (size_t i = 0; i < n; ++i) AddOne(x[i]);
      return;
    }
    count += n;
    low = std::min<double>(low, block.low);
    high = std::max<double>(high, block.high);
    sum += block.sum;
    square += block.square;
  }
  void Store(Statistics* result) const {
    const uint64_t finite = count - nan - inf;
    *result = Statistics{};
    result->nan_count = nan;
    result->inf_count = inf;
    if (finite == 0) return;
    result->min = low;
    result->max = high;
    result->mean = sum / static_cast<double>(finite);
    result->l2 = std::sqrt(square);
  }
};

template <typename T>
void AddAll(const void* elements, size_t count, Accumulator* to) {
  const T* x = static_cast<const T*>(elements);
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, Half> ||
                std::is_same_v<T, Bfloat16>) {
    size_t i = 0;
    float converted[kBlock];
    for (; i + kLanes <= count; i += kBlock) {
      const size_t n = std::min(kBlock, (count - i) / kLanes * kLanes);
      if constexpr (std::is_same_v<T, float>) {
        to->AddBlock(x + i, n);
      } else {
        for (size_t k = 0; k < n; ++k) converted[k] = static_cast<float>(x[i + k]);
        to->AddBlock(converted, n);
      }
      if (n < kBlock) {
        i += n;
        break;
      }
    }
    for (; i < count; ++i) to->AddOne(static_cast<float>(x[i]));
  } else {
    for (size_t i = 0; i < count; ++i) to->AddOne(static_cast<double>(x[i]));
  }
}

using AddFunction = void (*)(const void*, size_t, Accumulator*);
struct Row {
  wire::DType dtype;
  AddFunction add;
};
constexpr Row kRows[] = {
    {wire::DType::kFloat32, AddAll<float>},   {wire::DType::kFloat64, AddAll<double>},
    {wire::DType::kFloat16, AddAll<Half>},    {wire::DType::kBfloat16, AddAll<Bfloat16>},
    {wire::DType::kUint8, AddAll<uint8_t>},   {wire::DType::kInt8, AddAll<int8_t>},
    {wire::DType::kInt16, AddAll<int16_t>},   {wire::DType::kInt32, AddAll<int32_t>},
    {wire::DType::kInt64, AddAll<int64_t>},   {wire::DType::kBool, AddAll<uint8_t>},
    {wire::DType::kUint16, AddAll<uint16_t>}, {wire::DType::kUint32, AddAll<uint32_t>},
    {wire::DType::kUint64, AddAll<uint64_t>},
};

}  // namespace

bool Summarise(const void* elements, size_t count, wire::DType dtype, Statistics* result) {
  for (const Row& row : kRows) {
    if (row.dtype != dtype) continue;
    Accumulator total;
    row.add(elements, count, &total);
    total.Store(result);
    return true;
  }
  return false;
}

}  // namespace acltape::agent
