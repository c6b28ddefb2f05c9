// Every metric element by element, as plainly as they are defined, to hold the kernels against; and
// elements to try them on.
#pragma once

#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "analyzer/metrics/metrics.h"

namespace acltape::analyzer {

using Bytes = std::vector<uint8_t>;

template <typename T>
Bytes BytesOf(const std::vector<T>& values) {
  Bytes bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// A floating type by the bits of its exponent and mantissa; the values of all finite numbers follow
// from them.
struct Format {
  storage::DType type;
  int exponent;
  int mantissa;
};
// Null for other types.
const Format* FormatOf(storage::DType type);
double Decode(const Format& format, uint64_t bits);
// To the nearest number of a format, ties to even.
uint64_t Encode(const Format& format, double value);
uint64_t BitsAt(const Bytes& bytes, storage::DType type, size_t i);
double ValueAt(const Bytes& bytes, storage::DType type, size_t i);

metrics::TensorMetrics PlainMetrics(storage::DType a_type, const Bytes& a, storage::DType b_type,
                                    const Bytes& b, size_t n);

// Sums may be rounded otherwise; everything else is the same.
void ExpectSame(const metrics::TensorMetrics& expected, const metrics::TensorMetrics& actual);

// Random elements of every kind: ordinary numbers, and if special any bits at all (NaN,
// infinities, subnormal numbers) and zeros of both signs.
Bytes RandomElements(std::mt19937_64& random, storage::DType type, size_t n, bool special);
// a with some bits changed, or other numbers altogether.
Bytes Altered(std::mt19937_64& random, storage::DType type, const Bytes& a, size_t n, bool special);

}  // namespace acltape::analyzer
