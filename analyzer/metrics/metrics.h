// How two contents of one tensor differ: every metric that a precision standard asks for, in one
// pass over both, on several threads.
//
// a is the reference, b what is judged. Elements are packed in the same order. The element types
// may differ (a recording in half against one in float): then numbers are compared, and bits and
// units in the last place are those of both sides rounded to the coarser type. Of a complex tensor
// each part counts as an element: the real part of element k has index 2k.
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
  // Bits (of different types: numbers). Elements with different ones; the row-major index and the
  // values at the first of them.
  int64_t differing = 0;
  int64_t first_index = -1;
  std::string first_a;
  std::string first_b;
  // Fewest leading bits that two paired elements have in common; -1: types without common bits.
  int agreeing_bits = 0;

  // Pairs that are finite on both sides, equal infinities and two NaN are comparable; the last two
  // are equal in every metric but bits. The rest is classed here and enters no other metric.
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
  int64_t max_abs_index = -1;  // the first; -1: no error
  double max_abs_or_rel = 0;   // greatest over pairs of the smaller of both errors
  // Relative errors near zero say little: below a small value of |a| the absolute error counts.
  double small_value = 0;
  double max_rel_large = 0;  // where |a| >= small_value
  double max_abs_small = 0;  // where |a| < small_value
  // Units in the last place, of the coarser type of the two: 0.0 and -0.0 are no unit apart.
  // Bucket 0 holds distance 0, bucket k distances (2^(k-2), 2^(k-1)], the last one everything
  // above. max_ulp -1: integers and booleans, which have none.
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
  int64_t comparable() const { return elements - nan_mismatches - inf_mismatches; }
  // Share of the comparable pairs whose ULP distance is above `limit`, rounded up to a power of 2.
  double ShareAboveUlp(int64_t limit) const;
};

struct MeasureOptions {
  int threads = 0;          // 0: as many as the machine has and the size deserves
  double small_value = -1;  // -1: DefaultSmallValue of the coarser type
};

// The result does not depend on the number of threads or the processor: sums are taken in fixed
// pieces. `elements` are those of the tensor (a complex one counts once here). Throws Error
// kCannotJudge for a complex type against a real one, and for elements of no type.
TensorMetrics Measure(storage::DType a_type, const uint8_t* a, storage::DType b_type,
                      const uint8_t* b, int64_t elements, const MeasureOptions& options = {});

// The type of the two whose numbers are further apart; of a floating and another type the floating
// one, of two others the first.
storage::DType CoarserType(storage::DType a, storage::DType b);

// 2^-10 for half and bfloat16, else 2^-20 (msprobe, absolute thresholds).
double DefaultSmallValue(storage::DType type);

// One element as a number, of a complex one the real part.
double ElementValue(storage::DType type, const uint8_t* element);

// One element as text ("0.125", "7", "true"), of a complex one the real part.
std::string ElementText(storage::DType type, const uint8_t* element);

// A JSON object with every metric, for the column `metrics` of the table comparison.
std::string MetricsJson(const TensorMetrics& metrics);

}  // namespace acltape::analyzer
