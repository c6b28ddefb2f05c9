// How two contents of one tensor differ: every metric that a precision standard asks for, in one
// pass over both, on several threads.
//
// a is the reference, b what is judged. Elements are packed in the same order. The element types
// may differ (a recording in half against one in float): floating types are compared as numbers,
// bits only when the types are equal.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "storage/trace.h"

namespace acltape::analyzer {

// Of one side.
struct SideStatistics {
  int64_t nan_count = 0;
  int64_t inf_count = 0;
  double min = 0;  // of the finite elements, as the three below
  double max = 0;
  double mean = 0;
  double norm = 0;  // L2
};

struct TensorMetrics {
  int64_t elements = 0;
  // Bits. Elements with different ones; the row-major index and the values at the first of them.
  int64_t differing = 0;
  int64_t first_index = -1;
  std::string first_a;
  std::string first_b;
  int agreeing_bits = 0;  // fewest leading bits that two paired elements have in common

  // Pairs that are finite on both sides, and equal pairs of infinities, count as comparable. The
  // rest is classed: NaN against NaN is equal in every metric but bits.
  int64_t nan_mismatches = 0;  // NaN on one side only
  int64_t inf_mismatches = 0;  // an infinity against a number or the other infinity
  SideStatistics a;
  SideStatistics b;

  double max_abs = 0;
  double mean_abs = 0;
  double rmse = 0;
  // |a - b| / |a|; pairs with a = 0 and b != 0 count as relative error 1, both 0 as 0.
  double max_rel = 0;
  double mean_rel = 0;
  int64_t max_abs_index = -1;
  // Units in the last place, of the coarser type of the two. Bucket 0 holds distance 0, bucket k
  // distances [2^(k-1), 2^k); the last one everything above. -1: integers and booleans.
  int64_t max_ulp = 0;
  double mean_ulp = 0;
  std::array<int64_t, 34> ulp_buckets{};
  double cosine = 1;  // 1 when both are zero vectors
  double nmse = 0;    // sum (a-b)^2 / sum a^2
  // Shares of the comparable pairs with a relative error at most 1/100, 1/1000, 1/10000.
  double within_hundredth = 1;
  double within_thousandth = 1;
  double within_ten_thousandth = 1;

  bool bitwise_equal() const { return differing == 0; }
  // Share of the comparable pairs whose ULP distance is above `limit` (rounded up to a bucket).
  double ShareAboveUlp(int64_t limit) const;
};

// `threads` 0: as many as the machine has and the size deserves. The result does not depend on it
// but for the rounding of sums, which are taken in fixed pieces.
TensorMetrics Measure(storage::DType a_type, const uint8_t* a, storage::DType b_type,
                      const uint8_t* b, int64_t elements, int threads = 0);

// A JSON object with every metric, for the column `metrics` of the table comparison.
std::string MetricsJson(const TensorMetrics& metrics);

}  // namespace acltape::analyzer
