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

// Room for the distances of a block, 32 bits each where those hold them, else 64.
union DistanceArray {
  uint32_t narrow[kElements];
  uint64_t wide[kElements];
};

// Arrays of doubles have room for kElements; `n` of them are elements, the others are 0.
struct Kernels {
  const char* instruction_set;
  // Elements as doubles, exactly but for 64-bit integers, which are rounded.
  void (*load[kTypes])(const uint8_t* elements, size_t n, double* values);
  // By log2 of the element's bytes.
  Bits (*compare_bits[4])(const uint8_t* a, const uint8_t* b, size_t n);
  // |a - b| of integers that doubles cannot tell apart; null for other types.
  void (*subtract_exactly[kTypes])(const uint8_t* a, const uint8_t* b, size_t n, double* errors);
  // ULP distances of elements of one floating type, 0 where one side is not finite; null for
  // others.
  void (*distances[kTypes])(const uint8_t* a, const uint8_t* b, size_t n, DistanceArray* distances);
  // The same of numbers rounded to that type, and the bits in which they differ. Null for float64.
  uint64_t (*rounded_distances[kTypes])(const double* a, const double* b, size_t n,
                                        DistanceArray* distances);
  // Adds to counts by width, of narrow and of wide distances.
  Distances (*count_narrow)(const DistanceArray& distances, size_t n, uint32_t* counts);
  Distances (*count_wide)(const DistanceArray& distances, size_t n, uint32_t* counts);
  // Of a whole block of finite values whose squares are finite; else returns false. `errors` may be
  // null: then |a - b|.
  bool (*sum_finite)(const double* a, const double* b, const double* errors, double small_value,
                     Sums* sums);
  // Of any block. Puts zeros in the place of pairs that are not finite.
  void (*sum_any)(double* a, double* b, double* errors, size_t n, double small_value, Sums* sums);
};

extern const Kernels kBaselineKernels;
extern const Kernels kV3Kernels;  // x86-64-v3: AVX2
extern const Kernels kV4Kernels;  // x86-64-v4: AVX-512

}  // namespace acltape::analyzer::block
