// What Measure does with one block of elements, in the form that compilers vectorise.
//
// block_kernels.inc is compiled once for each instruction set of a processor family
// (block_baseline.cpp, block_v3.cpp, block_v4.cpp), into a table of functions each; BlockKernels
// picks the best that the machine has. All tables give the same results bit for bit: sums run in
// the same eight lanes and products are never fused with additions. Files compiled for one
// instruction set must include nothing with inline functions, whose code the linker might give to
// all others.
#pragma once

#include <cstddef>
#include <cstdint>

namespace acltape::analyzer::block {

constexpr size_t kElements = 512;  // of a block; a multiple of the lanes
constexpr size_t kWidths = 35;     // of ULP distances: bits of 2 d - 1, the last for all above

// Element types as the kernels see them; parts of complex numbers are elements.
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

struct Side {
  double sum = 0;  // of the finite elements, as all but the counts
  double square = 0;
  double low = 0;
  double high = 0;
  int64_t finite = 0;
  int64_t nan = 0;
};

// Of the pairs that are finite on both sides, but for the counts.
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
  double max_either = 0;     // of the smaller of absolute and relative error
  double max_rel_large = 0;  // where |a| is at least the small value
  double max_abs_small = 0;  // where it is below
  int64_t within[3] = {};    // comparable pairs with a relative error of at most 1e-2, 1e-3, 1e-4
  int64_t nan_mismatches = 0;
  int64_t inf_mismatches = 0;
};

struct Distances {
  uint64_t greatest = 0;
  double sum = 0;
};

// A block is kElements elements: n of the tensor, behind them zeros.
struct Kernels {
  const char* instruction_set;
  // The first n elements as doubles, exactly but for 64-bit integers, which are rounded. Reads no
  // further.
  void (*load[kTypes])(const uint8_t* elements, size_t n, double* values);
  // By log2 of the element's bytes.
  Bits (*compare_bits[4])(const uint8_t* a, const uint8_t* b);
  // As numbers; two NaN are equal.
  int64_t (*count_unequal)(const double* a, const double* b);
  // ULP distances of elements of one floating type, 0 where one side is not finite; adds to counts
  // by width. By type, from kBfloat16.
  Distances (*distances[kFloatingTypes])(const uint8_t* a, const uint8_t* b, size_t n,
                                         uint32_t* counts);
  // The same of two types, rounded to the coarser, and the bits in which those differ.
  Distances (*rounded_distances[kFloatingTypes][kFloatingTypes])(const uint8_t* a, const uint8_t* b,
                                                                 size_t n, uint32_t* counts,
                                                                 uint64_t* unlike);
  // Into sums that are all 0.
  void (*sum[kTypes])(const uint8_t* a, const uint8_t* b, size_t n, double small_value, Sums* sums);
  // The same where both sides have the same bits.
  void (*sum_equal[kTypes])(const uint8_t* a, size_t n, Sums* sums);
  // The first pair of finite numbers with this |a - b|, or -1.
  int64_t (*find_error[kTypes])(const uint8_t* a, const uint8_t* b, size_t n, double error);
};

extern const Kernels kBaselineKernels;
extern const Kernels kV3Kernels;  // x86-64-v3: AVX2
extern const Kernels kV4Kernels;  // x86-64-v4: AVX-512

}  // namespace acltape::analyzer::block
