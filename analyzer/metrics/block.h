// The steps of Measure for one block of elements, in a form that compilers vectorise.
//
// block_kernels.inc is compiled once for each instruction set of a processor family
// (block_baseline.cpp, block_v3.cpp, block_v4.cpp). Each compilation makes one table of functions,
// and BestKernels picks the best table that the machine can run. All tables give the same results
// bit for bit: sums run in the same eight lanes, and products are never fused with additions. A
// file that is compiled for one instruction set must not include headers with inline functions,
// because the linker might give their code to all other files.
#pragma once

#include <cstddef>
#include <cstdint>

namespace acltape::analyzer::metrics::block {

constexpr size_t kElements = 512;  // elements of a block; a multiple of the lanes
// The number of width classes of ULP distances. A distance d is in the class of the bit width of
// (2d-1). The last class holds everything above.
constexpr size_t kWidths = 35;

// Element types as the kernels see them. Each part of a complex number is an element.
enum Type : int {
  kBool,
  kUint8,
  kInt8,
  kUint16,
  kInt16,
  kUint32,
  kInt32,
  kUint64,
  kInt64,
  kBfloat16,  // the floating types from the coarsest to the finest
  kFloat16,
  kFloat32,
  kFloat64,
  kTypes
};
constexpr size_t kFloatingTypes = kTypes - kBfloat16;

struct Bits {
  int64_t differing = 0;  // elements
  uint64_t unlike = 0;    // bits that differ in some pair
};

// Statistics of one of the two tensors that are compared.
struct Side {
  double sum = 0;  // sum of the finite elements, as all but the counts
  double square = 0;
  double low = 0;
  double high = 0;
  int64_t finite = 0;
  int64_t nan = 0;
};

// Statistics of the pairs that are finite on both sides. The counts are of all pairs.
struct Sums {
  Side a;
  Side b;
  double square_a = 0;
  double square_b = 0;
  double product = 0;
  double square_error = 0;
  double abs = 0;
  double rel = 0;
  double max_abs = 0;
  double max_rel = 0;
  double max_either = 0;     // greatest smaller one of absolute and relative error
  double max_rel_large = 0;  // greatest for |a| of at least the small value
  double max_abs_small = 0;  // greatest for |a| below it
  // Comparable pairs with a relative error of at most 1e-2, 1e-3 and 1e-4.
  int64_t within[3] = {};
  int64_t nan_mismatches = 0;
  int64_t inf_mismatches = 0;
};

struct Distances {
  uint64_t greatest = 0;
  double sum = 0;
};

// The functions of one instruction set. A block has kElements elements: n of the tensor, then
// zeros.
struct Kernels {
  const char* instruction_set;
  // Loads the first n elements as doubles, and reads no further. The values are exact, but 64-bit
  // integers are rounded.
  void (*load[kTypes])(const uint8_t* elements, size_t n, double* values);
  // Compares bit patterns. The index is log2 of the element's bytes.
  Bits (*compare_bits[4])(const uint8_t* a, const uint8_t* b);
  // Counts the pairs that differ as numbers. Two NaN are equal.
  int64_t (*count_unequal)(const double* a, const double* b);
  // Measures ULP distances of elements of one floating type. A distance is 0 if one side is not
  // finite. Adds to counts by width. The index is the type, from kBfloat16.
  Distances (*distances[kFloatingTypes])(const uint8_t* a, const uint8_t* b, size_t n,
                                         uint32_t* counts);
  // Measures ULP distances of elements of two types, rounded to the coarser one. `unlike` gets the
  // bits in which the rounded values differ.
  Distances (*rounded_distances[kFloatingTypes][kFloatingTypes])(const uint8_t* a, const uint8_t* b,
                                                                 size_t n, uint32_t* counts,
                                                                 uint64_t* unlike);
  // Adds to sums that are all 0.
  void (*sum[kTypes])(const uint8_t* a, const uint8_t* b, size_t n, double small_value, Sums* sums);
  // Adds as `sum` does, for two sides with the same bits.
  void (*sum_equal[kTypes])(const uint8_t* a, size_t n, Sums* sums);
  // Finds the first pair of finite numbers with this |a - b|, or returns -1.
  int64_t (*find_error[kTypes])(const uint8_t* a, const uint8_t* b, size_t n, double error);
};

extern const Kernels kBaselineKernels;
extern const Kernels kV3Kernels;  // x86-64-v3: AVX2
extern const Kernels kV4Kernels;  // x86-64-v4: AVX-512

}  // namespace acltape::analyzer::metrics::block
