#include "runtime/opapi/kernels/expert_matrices.h"

#include <string>

namespace acltape::opapi {

using at::Tensor;

namespace {

bool IsList(const Call& call, int i) { return call.Arg(i).kind == acl::ArgKind::kTensorList; }

// A matrix, or several of the same sizes, of int8 or of int32 that packs integers of 4 bits.
IntegerMatrix FromView(const Call& call, int i, const Tensor& view, int64_t inner) {
  IntegerMatrix matrix{.view = view};
  if (view.scalar_type() == at::kInt) {
    if (view.dim() < 2) call.RejectArg(i, "has less than 2 dims");
    matrix.packed_dim = view.size(-2) == inner ? -1 : -2;
  } else if (view.scalar_type() != at::kChar) {
    call.RejectArg(i, "is neither of dtype int8 nor int32, which packs eight integers of 4 bits");
  }
  return matrix;
}

std::vector<IntegerMatrix> ReadParts(const Call& call, int i, int64_t inner) {
  if (!IsList(call, i)) return {ReadIntegerMatrix(call, i, inner)};
  std::vector<IntegerMatrix> parts;
  for (const Tensor& view : call.Views(i)) parts.push_back(FromView(call, i, view, inner));
  return parts;
}

}  // namespace

ExpertMatrices ExpertMatrices::Readable() const {
  ExpertMatrices readable = *this;
  for (IntegerMatrix& part : readable.parts) {
    if (part.four_bits.defined()) part = {.view = part.four_bits.Read()};
  }
  return readable;
}

Tensor ExpertMatrices::Of(int64_t expert) const {
  if (parts.size() > 1 || parts[0].view.dim() == 2) return parts[expert].Read().to(at::kDouble);
  const IntegerMatrix matrix{.view = parts[0].view[expert], .packed_dim = parts[0].packed_dim};
  return matrix.Read().to(at::kDouble);
}

ExpertMatrices ReadExpertMatrices(const Call& call, int i, int64_t inner) {
  ExpertMatrices matrices{.parts = ReadParts(call, i, inner)};
  if (matrices.parts.empty()) call.RejectArg(i, "has no tensors");
  const std::vector<int64_t> first = matrices.parts[0].sizes();
  const bool together = matrices.parts.size() == 1 && (first.size() == 3 || !IsList(call, i));
  if (first.size() != (together ? 3u : 2u)) {
    call.RejectArg(i, together ? "has not 3 dims" : "has a tensor that is no matrix");
  }
  for (const IntegerMatrix& part : matrices.parts) {
    if (part.sizes() != first || part.view.scalar_type() != matrices.parts[0].view.scalar_type()) {
      call.RejectArg(i, "has matrices of several sizes or dtypes");
    }
  }
  matrices.experts = together ? first[0] : static_cast<int64_t>(matrices.parts.size());
  matrices.inner = first[first.size() - 2];
  matrices.columns = first.back();
  if (matrices.inner != inner) call.RejectArg(i, "has another number of rows than x has columns");
  if (matrices.experts == 0 || inner == 0 || matrices.columns == 0) call.RejectArg(i, "is empty");
  return matrices;
}

std::vector<Tensor> ReadOfExperts(const Call& call, int i, int64_t experts) {
  std::vector<Tensor> tensors;
  if (IsList(call, i)) {
    tensors = call.ListBits(i);
  } else {
    tensors = {call.Bits(i)};
  }
  const bool together = tensors.size() == 1 && (!IsList(call, i) || tensors[0].dim() > 1);
  if (together) {
    if (tensors[0].dim() == 0) call.RejectArg(i, "has no dims");
    tensors = tensors[0].unbind(0);
  }
  if (static_cast<int64_t>(tensors.size()) != experts) {
    call.RejectArg(i, "has not one entry for each of " + std::to_string(experts) + " experts");
  }
  return tensors;
}

Tensor ReadExpertGroups(const Call& call, int i, int64_t experts) {
  const Tensor groups = call.View(i);
  call.ExpectSizes(i, groups, {experts});
  if (groups.scalar_type() != at::kLong) call.RejectArg(i, "is not of dtype int64");
  return groups;
}

Tensor SpreadFactors(const Tensor& factors, int64_t inner) {
  const Tensor wide = ScaleOf(factors).to(at::kDouble);
  if (wide.dim() == 1) return wide.unsqueeze(0);
  return wide.repeat_interleave(inner / wide.size(0), 0);
}

void ExpectFactors(const Call& call, int i, const Tensor& factors, int64_t inner, int64_t columns) {
  if (factors.dim() == 1) return call.ExpectSizes(i, factors, {columns});
  call.ExpectRank(i, factors, 2);
  const int64_t groups = factors.size(0);
  if (groups == 0 || inner % groups != 0) {
    call.RejectArg(i, "has groups that do not divide the inner dim");
  }
  call.ExpectSizes(i, factors, {groups, columns});
}

}  // namespace acltape::opapi
