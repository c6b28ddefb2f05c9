// Measures how two contents of one tensor differ. It computes every metric that a precision
// standard asks for, in one pass over both contents, on several threads.
//
// a is the reference and b is judged. Elements are packed in the same order. The element types may
// differ, such as a recording in half and one in float. Then numbers are compared. Bits and units
// in the last place are then those of both sides rounded to the coarser type. Each part of a
// complex number counts as an element: the real part of element k has index 2k.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "storage/trace.h"

namespace acltape::analyzer::metrics {

// Statistics of one of the two contents.
struct SideStatistics {
  int64_t nan_count = 0;
  int64_t inf_count = 0;
  double min = 0;  // least of the finite elements, as the three below
  double max = 0;
  double mean = 0;
  double norm = 0;  // L2
};

struct TensorMetrics {
  int64_t elements = 0;
  // Elements whose bits differ (for different types: whose numbers differ), and the row-major index
  // and the values of the first one.
  int64_t differing = 0;
  int64_t first_index = -1;
  std::string first_a;
  std::string first_b;
  // The fewest leading bits that any two paired elements have in common. -1 if the types have no
  // common bits.
  int agreeing_bits = 0;

  // A pair is comparable if both sides are finite, equal infinities, or both NaN. Equal infinities
  // and two NaN count as equal in every metric except bits. All other pairs are counted here and
  // enter no other metric.
  int64_t nan_mismatches = 0;  // NaN on one side only
  int64_t inf_mismatches = 0;  // an infinity against a number or the other infinity
  SideStatistics a;
  SideStatistics b;

  double max_abs = 0;
  double mean_abs = 0;
  double rmse = 0;
  // The metric |a - b| / |a|. A pair with a = 0 and b != 0 has relative error 1; a pair of zeros
  // has 0.
  double max_rel = 0;
  double mean_rel = 0;
  int64_t max_abs_index = -1;  // index of the first pair with max_abs; -1: no error
  // The smaller of the absolute and the relative error of a pair, greatest over all pairs.
  double max_abs_or_rel = 0;
  // Relative errors near zero say little. Where |a| is below small_value the absolute error counts.
  double small_value = 0;
  double max_rel_large = 0;  // for |a| >= small_value
  double max_abs_small = 0;  // for |a| < small_value
  // Units in the last place of the coarser type. 0.0 and -0.0 have distance 0. Bucket 0 holds
  // distance 0, bucket k holds distances in (2^(k-2), 2^(k-1)], and the last one holds everything
  // above. max_ulp is -1 for integers and booleans, which have no such units.
  int64_t max_ulp = 0;
  double mean_ulp = 0;
  std::array<int64_t, 34> ulp_buckets{};
  double cosine = 1;  // 1 when both are zero vectors
  double nmse = 0;    // sum (a-b)^2 / sum a^2
  // Shares of the comparable pairs with a relative error of at most 1/100, 1/1000 and 1/10000.
  double within_hundredth = 1;
  double within_thousandth = 1;
  double within_ten_thousandth = 1;

  bool bitwise_equal() const { return differing == 0; }
  int64_t comparable() const { return elements - nan_mismatches - inf_mismatches; }
  // The share of the comparable pairs whose ULP distance is above `limit`, rounded up to a power of
  // 2.
  double ShareAboveUlp(int64_t limit) const;
};

struct MeasureOptions {
  int threads = 0;          // 0: chosen by the machine and the size
  double small_value = -1;  // -1: DefaultSmallValue of the coarser type
};

// Measures all metrics. The result does not depend on the number of threads or the processor,
// because sums are taken in fixed pieces. `elements` is the number of the tensor's elements; a
// complex one counts once here. Throws Error kCannotJudge for a complex type against a real one,
// and for a type without elements.
TensorMetrics Measure(storage::DType a_type, const uint8_t* a, storage::DType b_type,
                      const uint8_t* b, int64_t elements, const MeasureOptions& options = {});

// The type with the greater distance between its numbers. Of a floating and another type it is the
// floating one. Of two other types it is the first.
storage::DType CoarserType(storage::DType a, storage::DType b);

// 2^-10 for half and bfloat16, else 2^-20 (msprobe, absolute thresholds).
double DefaultSmallValue(storage::DType type);

// One element as a number. Of a complex element it is the real part.
double ElementValue(storage::DType type, const uint8_t* element);

// One element as text ("0.125", "7", "true"). Of a complex element it is the real part.
std::string ElementText(storage::DType type, const uint8_t* element);

// A JSON object with every metric, for the column `metrics` of the table comparison.
std::string MetricsJson(const TensorMetrics& metrics);

}  // namespace acltape::analyzer::metrics
