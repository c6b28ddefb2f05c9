// Matrices of experts, of integers of 8 or 4 bits, and what scales them. A call gives those of all
// experts in one tensor whose first dim counts the experts, or a list with a tensor for each.
#pragma once

#include <ATen/ATen.h>

#include <vector>

#include "runtime/opapi/engine/call.h"
#include "runtime/opapi/kernels/quantized_factors.h"

namespace acltape::opapi {

struct ExpertMatrices {
  std::vector<IntegerMatrix> parts;  // one with three dims, or a matrix for each expert
  int64_t experts = 0, inner = 0, columns = 0;

  bool OfFourBits() const { return parts[0].OfFourBits(); }
  // With the integers of dtype int4 as int8, which a task does once for all of its experts.
  ExpertMatrices Readable() const;
  // The matrix [inner, columns] of an expert, in float64. Call it on what Readable() gives.
  at::Tensor Of(int64_t expert) const;
};
// Argument `i`, matrices that have `inner` rows each; rejects others and those without columns.
ExpertMatrices ReadExpertMatrices(const Call& call, int i, int64_t inner);

// A tensor for each expert, from a list or from the first dim of the one tensor that the argument
// has. Integers of 64 bits come as signed ones.
std::vector<at::Tensor> ReadOfExperts(const Call& call, int i, int64_t experts);

// Rejects the call unless the tensor is a list of groups of rows: one integer of 64 bits for each
// expert.
at::Tensor ReadExpertGroups(const Call& call, int i, int64_t experts);

// Factors of an expert's matrix, one for each column or one for each column and each group of rows,
// as a matrix in float64 that multiplies it.
at::Tensor SpreadFactors(const at::Tensor& factors, int64_t inner);
// Rejects the call unless the factors are such.
void ExpectFactors(const Call& call, int i, const at::Tensor& factors, int64_t inner,
                   int64_t columns);

}  // namespace acltape::opapi
