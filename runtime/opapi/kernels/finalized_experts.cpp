// Quantised rows through the matrix of their expert, and the sums of the rows of each token
// (aclnnGroupedMatmulFinalizeRouting and its versions). Products and sums are in float64 and
// rounded once. Rows after the last group belong to no token's sum.
#include <ATen/ATen.h>

#include <string>

#include "runtime/opapi/kernels/expert_matrices.h"
#include "runtime/opapi/kernels/group_ends.h"
#include "runtime/opapi/kernels/quantize.h"
#include "runtime/opapi/kernels/whole.h"
#include "runtime/opapi/kernels/within.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

// The weights that a version of the operator takes.
enum class FinalizedWeights : uint8_t { kFourBits, kInt8, kBoth };

// The positions of the arguments in a version of the operator; -1: none. Those from `dtype` on
// follow each other: dtype, sharedInputWeight, sharedInputOffset, transposeX, transposeW,
// groupListType.
struct FinalizedArguments {
  static constexpr int kScale = 2, kBias = 3;
  int offset, row_scale, dtype, out;
  std::vector<int> absent;  // the page reserves them
  FinalizedWeights weights;
  bool short_index;  // rowIndex may be int32, too

  int groups() const { return row_scale + 1; }
  int shared() const { return row_scale + 2; }
  int logit() const { return row_scale + 3; }
  int row_index() const { return row_scale + 4; }
};
const FinalizedArguments kFinalized = {-1, 4, 9, 15, {}, FinalizedWeights::kFourBits, false};
const FinalizedArguments kFinalizedV2 = {4, 7, 12, 18, {5, 6}, FinalizedWeights::kFourBits, false};
const FinalizedArguments kFinalizedV3 = {4, 7, 12, 19, {5, 6}, FinalizedWeights::kFourBits, false};
const FinalizedArguments kFinalizedNz = {-1, 4, 9, 15, {3}, FinalizedWeights::kInt8, true};
const FinalizedArguments kFinalizedNzV2 = {4, 7, 12, 19, {5, 6}, FinalizedWeights::kBoth, true};

struct FinalizedExperts {
  Tensor x;
  ExpertMatrices weights;
  std::vector<Tensor> scales, biases, offsets;  // one for each expert, or none
  Tensor row_scale, groups, shared, logit, row_index, out;
  double shared_weight = 1;
  int64_t shared_offset = 0;
  bool lengths = false;

  // Rows of an expert. With a bias the weight has 4 bits: a device splits a row of int8 into two of
  // 4 bits, the lower one 8 too small, which the bias makes up for.
  Tensor Products(const Tensor& rows, const Tensor& of_rows, const ExpertMatrices& read,
                  int64_t expert) const {
    const Tensor factors = SpreadFactors(scales[expert], read.inner);
    Tensor sums = at::mm(biases.empty() ? rows : rows - 8, read.Of(expert) * factors);
    if (!biases.empty()) sums = sums + biases[expert].to(at::kDouble);
    if (!offsets.empty()) sums = sums + at::mm(rows, SpreadFactors(offsets[expert], read.inner));
    return sums * of_rows.to(at::kDouble).unsqueeze(-1);
  }
  void Run() const {
    const Tensor tokens = Within(row_index, out.size(0), "rowIndex");
    const Tensor integers = x.to(at::kDouble), sums = at::zeros(out.sizes(), at::kDouble);
    const ExpertMatrices read = weights.Readable();
    if (shared.defined()) {
      sums.narrow(0, shared_offset, shared.size(0)).copy_(shared.to(at::kDouble) * shared_weight);
    }
    int64_t begin = 0, expert = 0;
    for (const int64_t end : GroupEnds(groups, lengths, x.size(0))) {
      if (end > begin) {
        Tensor rows =
            Products(integers.slice(0, begin, end), row_scale.slice(0, begin, end), read, expert);
        if (logit.defined()) {
          rows = rows * logit.slice(0, begin, end).to(at::kDouble).unsqueeze(-1);
        }
        Tensor(sums).index_add_(0, tokens.slice(0, begin, end), rows);
      }
      begin = end;
      ++expert;
    }
    out.copy_(sums);
  }
};

void ReadFinalizedOptions(const Call& call, const FinalizedArguments& at,
                          FinalizedExperts* experts) {
  if (call.Int(at.dtype) != 0) call.RejectArg(at.dtype, "must be 0 (float32)");
  experts->shared_weight = call.Real(at.dtype + 1);
  experts->shared_offset = call.Int(at.dtype + 2);
  for (int i : {at.dtype + 3, at.dtype + 4}) {
    if (call.Bool(i)) call.RejectArg(i, "must be false");
  }
  const int64_t kind = call.Int(at.dtype + 5);
  if (kind != 0 && kind != 1) {
    call.RejectArg(at.dtype + 5, "must be 0 (ends of groups) or 1 (their lengths)");
  }
  experts->lengths = kind == 1;
}

// Entries of argument `i` for each expert, one for each column and group of rows.
std::vector<Tensor> ReadExpertFactors(const Call& call, int i, const ExpertMatrices& weights,
                                      std::initializer_list<at::ScalarType> dtypes) {
  const std::vector<Tensor> factors = ReadOfExperts(call, i, weights.experts);
  for (const Tensor& each : factors) {
    ExpectDtypes(call, i, each, dtypes);
    ExpectFactors(call, i, each, weights.inner, weights.columns);
  }
  return factors;
}

void ReadFinalizedScales(const Call& call, const FinalizedArguments& at,
                         FinalizedExperts* experts) {
  const ExpertMatrices& weights = experts->weights;
  const bool four_bits = weights.OfFourBits();
  if (four_bits ? at.weights == FinalizedWeights::kInt8
                : at.weights == FinalizedWeights::kFourBits) {
    call.RejectArg(1, four_bits ? "must be of dtype int8" : "must be of integers of 4 bits");
  }
  if (four_bits) {
    experts->scales = ReadExpertFactors(call, at.kScale, weights, {at::kLong});
    call.View(at.kBias);
    experts->biases = ReadExpertFactors(call, at.kBias, weights, {at::kFloat});
  } else {
    experts->scales = ReadExpertFactors(call, at.kScale, weights, {at::kFloat, at::kBFloat16});
    if (!call.IsAbsent(at.kBias)) call.RejectArg(at.kBias, "is given, but the weight is of int8");
  }
  for (const Tensor& each : experts->biases) call.ExpectSizes(at.kBias, each, {weights.columns});
  if (at.offset < 0 || call.IsAbsent(at.offset)) return;
  if (!four_bits) call.RejectArg(at.offset, "is given, but the weight is of int8");
  experts->offsets = ReadExpertFactors(call, at.offset, weights, {at::kFloat});
}

// A tensor of one dim with an entry for each row.
Tensor ReadFinalizedRows(const Call& call, int i, int64_t rows, at::ScalarType dtype) {
  const Tensor tensor = call.View(i);
  ExpectDtypes(call, i, tensor, {dtype});
  call.ExpectSizes(i, tensor, {rows});
  return tensor;
}

// Reads what is added to the rows, and to which tokens.
void ReadFinalizedSums(const Call& call, const FinalizedArguments& at, FinalizedExperts* experts) {
  const int64_t rows = experts->x.size(0), columns = experts->weights.columns;
  experts->row_scale = ReadFinalizedRows(call, at.row_scale, rows, at::kFloat);
  experts->groups = ReadExpertGroups(call, at.groups(), experts->weights.experts);
  experts->row_index = call.View(at.row_index());
  call.ExpectIndex(at.row_index(), experts->row_index);
  if (!at.short_index) ExpectDtypes(call, at.row_index(), experts->row_index, {at::kLong});
  call.ExpectSizes(at.row_index(), experts->row_index, {rows});
  if (!call.IsAbsent(at.logit())) {
    experts->logit = ReadFinalizedRows(call, at.logit(), rows, at::kFloat);
  }
  const Tensor out = experts->out = call.Out(at.out);
  ExpectDtypes(call, at.out, out, {at::kFloat});
  call.ExpectRank(at.out, out, 2);
  call.ExpectSizes(at.out, out, {out.size(0), columns});
  if (call.IsAbsent(at.shared())) return;
  if (!experts->logit.defined()) call.RejectArg(at.shared(), "is given without logit");
  const Tensor shared = experts->shared = call.View(at.shared());
  ExpectDtypes(call, at.shared(), shared, {at::kBFloat16});
  call.ExpectRank(at.shared(), shared, 2);
  call.ExpectSizes(at.shared(), shared, {shared.size(0), columns});
  if (experts->shared_offset < 0 || experts->shared_offset + shared.size(0) > out.size(0)) {
    call.RejectArg(at.dtype + 2, "does not leave sharedInput within the output's rows");
  }
}

// (x, w, scale, bias, ..., pertokenScale, groupList, sharedInput, logit, rowIndex, dtype,
// sharedInputWeight, sharedInputOffset, transposeX, transposeW, groupListType, ..., out)
std::unique_ptr<Kernel> BindFinalizedExperts(const Call& call, const FinalizedArguments& at) {
  call.ExpectAbsent(at.absent);
  FinalizedExperts experts{.x = call.View(0)};
  call.ExpectRank(0, experts.x, 2);
  ExpectInt8(call, 0, experts.x);
  if (experts.x.numel() == 0) call.RejectArg(0, "is empty");
  ReadFinalizedOptions(call, at, &experts);
  experts.weights = ReadExpertMatrices(call, 1, experts.x.size(1));
  ReadFinalizedScales(call, at, &experts);
  ReadFinalizedSums(call, at, &experts);
  return MakeKernel([experts] { experts.Run(); });
}

}  // namespace

KernelRows FinalizedExpertRows() {
  const auto version = [](const FinalizedArguments& at) {
    return [&at](const Call& call) { return BindFinalizedExperts(call, at); };
  };
  return {
      {"aclnnGroupedMatmulFinalizeRouting", version(kFinalized)},
      {"aclnnGroupedMatmulFinalizeRoutingV2", version(kFinalizedV2)},
      {"aclnnGroupedMatmulFinalizeRoutingV3", version(kFinalizedV3)},
      {"aclnnGroupedMatmulFinalizeRoutingWeightNz", version(kFinalizedNz), Widen::kNever, {6, 7}},
      {"aclnnGroupedMatmulFinalizeRoutingWeightNzV2",
       version(kFinalizedNzV2),
       Widen::kNever,
       {9, 10}},
  };
}

}  // namespace acltape::opapi
