// Seeded inputs of the operator grid, in the forms that operators must cope with.
#pragma once

#include <ATen/ATen.h>

#include <vector>

namespace acltape::opapi::grid {

using at::Tensor;
using Tensors = std::vector<Tensor>;
using Dtypes = std::vector<at::ScalarType>;

inline const Dtypes kFloats = {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16};
inline const Dtypes kIntegers = {at::kLong, at::kInt, at::kShort, at::kChar, at::kByte};
inline const Dtypes kNumbers = {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kLong,
                                at::kInt,   at::kShort,  at::kChar, at::kByte};
inline const Dtypes kAll = {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kLong,
                            at::kInt,   at::kShort,  at::kChar, at::kByte,     at::kBool};
inline const Dtypes kIntegersAndBool = {at::kLong, at::kInt,  at::kShort,
                                        at::kChar, at::kByte, at::kBool};

// Values in [low, high). The same seed gives the same sequence of tensors.
class Source {
 public:
  Source(uint64_t seed, double low, double high);

  Tensor Random(at::IntArrayRef sizes, at::ScalarType dtype);
  Tensor Random(at::IntArrayRef sizes, at::ScalarType dtype, double low, double high);
  // Elements in [0, bound).
  Tensor Indices(at::IntArrayRef sizes, int64_t bound, at::ScalarType dtype = at::kLong);
  // A permutation of [0, count): indices without duplicates.
  Tensor Shuffled(int64_t count);

  // NaN, infinities, zeros of both signs, the extremes of the dtype.
  Tensor Specials(at::ScalarType dtype) const;

  // 0-dim, empty, vector, dense, large, transposed, sliced with an offset, expanded, permuted.
  Tensors Views(at::ScalarType dtype);
  // True when elements of the view share memory.
  static bool IsExpanded(const Tensor& view);
  // Like Views, but with at least 2 dims and without an expanded one.
  Tensors Matrices(at::ScalarType dtype);
  // Pairs that broadcast.
  struct Pair {
    Tensor a, b;
  };
  std::vector<Pair> Pairs(at::ScalarType a, at::ScalarType b);

 private:
  at::Generator generator_;
  double low_, high_;
};

}  // namespace acltape::opapi::grid
