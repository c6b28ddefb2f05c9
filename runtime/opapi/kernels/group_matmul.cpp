// Matrix products that communicate with the other ranks of a group before or after them. Products
// are computed in float32 and rounded once to the dtype, which the ranks then exchange. So a call
// has the bits of a product and a collective of HCCL one after the other.
#include <ATen/ATen.h>

#include "runtime/opapi/kernels/expect_dtypes.h"
#include "runtime/opapi/kernels/group_kernel.h"
#include "runtime/opapi/kernels/row_norm.h"

namespace acltape::opapi {

namespace {

using at::Tensor;

// x1 @ x2 + bias.
struct RankProduct {
  Tensor x1, x2, bias;

  Tensor operator()() const { return Of(x1); }
  Tensor Of(const Tensor& left) const {
    Tensor product = at::matmul(left.to(at::kFloat), x2.to(at::kFloat));
    if (bias.defined()) product += bias;
    return product;
  }
  std::vector<int64_t> sizes() const {
    std::vector<int64_t> sizes = x1.sizes().vec();
    sizes.back() = x2.size(1);
    return sizes;
  }
};

// Arguments 0 and 1 are the factors. `bias_index` may be -1. The product is made of so many parts
// of the first factor side by side.
RankProduct ReadProduct(const Call& call, int bias_index, bool transposed = false,
                        int64_t parts = 1) {
  RankProduct product{call.View(0), call.View(1), {}};
  ExpectDtypes(call, 0, product.x1, {at::kHalf, at::kBFloat16});
  ExpectDtypes(call, 1, product.x2, {product.x1.scalar_type()});
  if (product.x1.dim() != 2 && product.x1.dim() != 3) call.RejectArg(0, "must have 2 or 3 dims");
  call.ExpectRank(1, product.x2, 2);
  if (transposed) product.x2 = product.x2.t();
  if (product.x1.size(-1) * parts != product.x2.size(0)) {
    call.RejectCall("shapes " + SizesText(product.x1.sizes()) + " and " +
                    SizesText(product.x2.sizes()) + " do not multiply" +
                    (parts == 1 ? "" : " for " + std::to_string(parts) + " ranks"));
  }
  if (bias_index >= 0 && !call.IsAbsent(bias_index)) {
    product.bias = call.View(bias_index);
    ExpectFloats(call, bias_index, product.bias);
    call.ExpectSizes(bias_index, product.bias, {product.x2.size(1)});
  }
  return product;
}

// An output of the dtype of the factors.
Tensor ReadOut(const Call& call, int i, const RankProduct& product, at::IntArrayRef sizes) {
  const Tensor out = call.Out(i);
  ExpectDtypes(call, i, out, {product.x1.scalar_type()});
  call.ExpectSizes(i, out, sizes);
  return out;
}

// The product, summed over the ranks; `added` is added on each rank before the sum, unless it is
// not defined. `after` gets the sum.
std::unique_ptr<Kernel> MakeSum(Group group, const RankProduct& product, const Tensor& added,
                                std::function<void(const Tensor&)> after) {
  const auto own = [=] {
    const Tensor whole = product();
    return added.defined() ? whole + added : whole;
  };
  return MakeSumKernel(std::move(group), product.x1.scalar_type(), own, std::move(after));
}

// (x1, x2, bias?, [x3,] group, reduceOp, [commMode,] commTurn, streamMode, output)
std::unique_ptr<Kernel> BindAllReduce(const Call& call, bool adds, int output) {
  const int group = adds ? 4 : 3;
  const RankProduct product = ReadProduct(call, 2);
  ExpectSum(call, group + 1);
  const Tensor out = ReadOut(call, output, product, product.sizes());
  Tensor added;
  if (adds && !call.IsAbsent(3)) {
    added = call.View(3);
    ExpectDtypes(call, 3, added, {product.x1.scalar_type()});
    call.ExpectSizes(3, added, out.sizes());
  }
  return MakeSum(Group(call, group), product, added, [out](const Tensor& sum) { out.copy_(sum); });
}

// The sum of a product goes on: y = sum + residual, and the root mean square norm of its rows.
struct SumNorm {
  Tensor residual, gamma, sum, norm;
  double epsilon;

  void Write(const Tensor& product) const {
    const Tensor added = product.to(at::kFloat) + residual;
    const Tensor inverse = InverseRms(added, {-1}, epsilon);
    sum.copy_(added);
    norm.copy_(added * inverse * gamma.to(at::kFloat));
  }
};

// Arguments of the norm: the positions of the residual, of gamma, and of the outputs.
SumNorm ReadSumNorm(const Call& call, const RankProduct& product, int residual, double epsilon,
                    int sum, int norm) {
  SumNorm read{call.View(residual), call.View(residual + 1), call.Out(sum), call.Out(norm),
               epsilon};
  const std::vector<int64_t> sizes = product.sizes();
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < sizes.size(); ++i) rows *= sizes[i];
  const at::ScalarType dtype = product.x1.scalar_type();
  for (const auto& [i, tensor] :
       {std::pair<int, Tensor*>{residual, &read.residual}, {sum, &read.sum}, {norm, &read.norm}}) {
    ExpectDtypes(call, i, *tensor, {dtype});
    // Callers give the rows of a product of two dims as [rows, 1, width] too.
    if (tensor->dim() < 2 || tensor->size(-1) != sizes.back() ||
        tensor->numel() != rows * sizes.back()) {
      call.RejectArg(i,
                     "has shape " + SizesText(tensor->sizes()) + ", expected " + SizesText(sizes));
    }
    *tensor = tensor->view(sizes);
  }
  ExpectFloats(call, residual + 1, read.gamma);
  call.ExpectSizes(residual + 1, read.gamma, {sizes.back()});
  return read;
}

// (x1, x2, bias?, residual, gamma, epsilon, group, reduceOp, commTurn, streamMode, y, normOut)
std::unique_ptr<Kernel> BindAllReduceNorm(const Call& call) {
  const RankProduct product = ReadProduct(call, 2);
  ExpectSum(call, 7);
  const SumNorm norm = ReadSumNorm(call, product, 3, call.Real(5), 10, 11);
  return MakeSum(Group(call, 6), product, {}, [norm](const Tensor& sum) { norm.Write(sum); });
}

// (x1, x2, residual, gamma, groupTp, tpRankSize, tpRankId, epsilon, isTransB, isGatherAddOut, y,
// addOut): y is the norm. Without isGatherAddOut a device leaves a part of addOut to the other
// ranks; here it is whole in any case.
std::unique_ptr<Kernel> BindPluginAllReduceNorm(const Call& call) {
  const RankProduct product = ReadProduct(call, -1, call.Bool(8));
  const SumNorm norm = ReadSumNorm(call, product, 2, call.Real(7), 11, 10);
  Group group(call, 4);
  if (call.Int(5) != group.ranks()) {
    call.RejectArg(5, "is " + std::to_string(call.Int(5)) + ", and the group has " +
                          std::to_string(group.ranks()) + " ranks");
  }
  if (call.Int(6) != group.rank()) {
    call.RejectArg(6, "is " + std::to_string(call.Int(6)) + ", and this is rank " +
                          std::to_string(group.rank()) + " of the group");
  }
  return MakeSum(std::move(group), product, {}, [norm](const Tensor& sum) { norm.Write(sum); });
}

// The product of the rows that all ranks give, one rank after the other. `group` is the position of
// the group's name, `output` that of the product; the rows follow it, unless that output is empty.
std::unique_ptr<Kernel> BindAllGather(const Call& call, int group_index, int output) {
  const RankProduct product = ReadProduct(call, 2);
  call.ExpectRank(0, product.x1, 2);
  if (call.Int(group_index + 1) != 0) {
    call.RejectArg(group_index + 1, "must be 0: ranks gather x1");
  }
  Group group(call, group_index);
  const int64_t rows = product.x1.size(0) * group.ranks(), inner = product.x1.size(1);
  const Tensor out = ReadOut(call, output, product, {rows, product.x2.size(1)});
  Tensor gathered;
  if (!call.IsAbsent(output + 1)) gathered = ReadOut(call, output + 1, product, {rows, inner});
  const auto own = std::make_shared<Tensor>(), all = std::make_shared<Tensor>();
  const auto before = [=] {
    *own = product.x1.contiguous();
    *all = at::empty({rows, inner}, own->options());
    return ExchangeOf(SOFT_ALL_GATHER, own->numel(), *own, *all);
  };
  return MakeGroupKernel(std::move(group), before, [=] {
    out.copy_(product.Of(*all));
    if (gathered.defined()) gathered.copy_(*all);
    *own = *all = Tensor();
  });
}

// The product, summed over the ranks, each of which gets its part of the rows.
std::unique_ptr<Kernel> BindReduceScatter(const Call& call, int group_index, int output) {
  const RankProduct product = ReadProduct(call, 2);
  call.ExpectRank(0, product.x1, 2);
  ExpectSum(call, group_index + 1);
  Group group(call, group_index);
  const int64_t rows = product.x1.size(0);
  if (rows % group.ranks() != 0) {
    call.RejectArg(0, "has " + std::to_string(rows) + " rows, which " +
                          std::to_string(group.ranks()) + " ranks do not share evenly");
  }
  const Tensor out = ReadOut(call, output, product, {rows / group.ranks(), product.x2.size(1)});
  const auto own = std::make_shared<Tensor>(), part = std::make_shared<Tensor>();
  const auto before = [=] {
    *own = product().to(product.x1.scalar_type()).contiguous();
    *part = at::empty(out.sizes(), own->options());
    return ExchangeOf(SOFT_REDUCE_SCATTER, part->numel(), *own, *part);
  };
  return MakeGroupKernel(std::move(group), before, [=] {
    out.copy_(*part);
    *own = *part = Tensor();
  });
}

// The product of the parts of x1 that the ranks give this one, side by side, and these parts.
// (x1, x2, bias?, axes?, group, [commMode,] transposeX1, transposeX2, output, parts?); `flags` is
// the position of transposeX1.
std::unique_ptr<Kernel> BindAllToAllProduct(const Call& call, int flags) {
  Group group(call, 4);
  ExpectAxes(call, 3, -2, -1);
  if (call.Bool(flags)) call.RejectArg(flags, "must be false");
  const int64_t ranks = group.ranks();
  const RankProduct product = ReadProduct(call, 2, call.Bool(flags + 1), ranks);
  call.ExpectRank(0, product.x1, 2);
  const int64_t all_rows = product.x1.size(0), inner = product.x1.size(1);
  if (all_rows % ranks != 0) {
    call.RejectArg(0, "has " + std::to_string(all_rows) + " rows, which " + std::to_string(ranks) +
                          " ranks do not share evenly");
  }
  const int64_t rows = all_rows / ranks;
  const Tensor out = ReadOut(call, flags + 2, product, {rows, product.x2.size(1)});
  Tensor parts;
  if (!call.IsAbsent(flags + 3)) parts = ReadOut(call, flags + 3, product, {rows, inner * ranks});
  const auto own = std::make_shared<Tensor>(), all = std::make_shared<Tensor>();
  const auto before = [=] {
    *own = product.x1.contiguous();
    *all = at::empty({ranks, rows, inner}, own->options());
    return ExchangeOf(SOFT_ALL_TO_ALL, rows * inner, *own, *all);
  };
  return MakeGroupKernel(std::move(group), before, [=] {
    const Tensor side_by_side = all->permute({1, 0, 2}).reshape({rows, ranks * inner});
    out.copy_(product.Of(side_by_side));
    if (parts.defined()) parts.copy_(side_by_side);
    *own = *all = Tensor();
  });
}

// This rank's columns of the products of all ranks, one below the other. The arguments are those of
// BindAllToAllProduct without the last one.
std::unique_ptr<Kernel> BindProductAllToAll(const Call& call, int flags) {
  Group group(call, 4);
  ExpectAxes(call, 3, -1, -2);
  if (call.Bool(flags)) call.RejectArg(flags, "must be false");
  const int64_t ranks = group.ranks();
  const RankProduct product = ReadProduct(call, 2, call.Bool(flags + 1));
  call.ExpectRank(0, product.x1, 2);
  const int64_t rows = product.x1.size(0), columns = product.x2.size(1) / ranks;
  if (product.x2.size(1) % ranks != 0) {
    call.RejectArg(1, "has " + std::to_string(product.x2.size(1)) + " columns, which " +
                          std::to_string(ranks) + " ranks do not share evenly");
  }
  const Tensor out = ReadOut(call, flags + 2, product, {rows * ranks, columns});
  const auto own = std::make_shared<Tensor>(), all = std::make_shared<Tensor>();
  const auto before = [=] {
    *own = product()
               .to(product.x1.scalar_type())
               .view({rows, ranks, columns})
               .permute({1, 0, 2})
               .contiguous();
    *all = at::empty(out.sizes(), own->options());
    return ExchangeOf(SOFT_ALL_TO_ALL, rows * columns, *own, *all);
  };
  return MakeGroupKernel(std::move(group), before, [=] {
    out.copy_(*all);
    *own = *all = Tensor();
  });
}

// The second versions take scales of quantised factors, and one more output about them.
std::unique_ptr<Kernel> BindAllGatherV2(const Call& call) {
  call.ExpectAbsent({3, 4, 5, 15});
  return BindAllGather(call, 7, 13);
}

std::unique_ptr<Kernel> BindReduceScatterV2(const Call& call) {
  call.ExpectAbsent({3, 4, 5, 14});
  return BindReduceScatter(call, 7, 13);
}

}  // namespace

KernelRows GroupMatmulRows() {
  constexpr Widen kNever = Widen::kNever;
  return {
      {"aclnnMatmulAllReduce",
       [](const Call& call) { return BindAllReduce(call, false, 7); },
       kNever,
       {2}},
      {"aclnnMatmulAllReduceV2",
       [](const Call& call) { return BindAllReduce(call, true, 8); },
       kNever,
       {2, 3}},
      {"aclnnMatmulAllReduceV3",
       [](const Call& call) { return BindAllReduce(call, true, 9); },
       kNever,
       {2, 3, 6}},
      {"aclnnMatmulAllReduceAddRmsNorm", BindAllReduceNorm, kNever, {2}},
      {"aclnnMatmulAllreduceAddRmsnorm", BindPluginAllReduceNorm},
      {"aclnnAllGatherMatmul",
       [](const Call& call) { return BindAllGather(call, 3, 7); },
       kNever,
       {8}},
      {"aclnnAllGatherMatmulV2", BindAllGatherV2, kNever, {12, 14}},
      {"aclnnMatmulReduceScatter", [](const Call& call) { return BindReduceScatter(call, 3, 7); }},
      {"aclnnMatmulReduceScatterV2", BindReduceScatterV2, kNever, {12}},
      {"aclnnAlltoAllMatmul", [](const Call& call) { return BindAllToAllProduct(call, 5); }},
      {"aclnnAlltoAllMatmulV2",
       [](const Call& call) { return BindAllToAllProduct(call, 6); },
       kNever,
       {5}},
      {"aclnnMatmulAlltoAll", [](const Call& call) { return BindProductAllToAll(call, 5); }},
      {"aclnnMatmulAlltoAllV2",
       [](const Call& call) { return BindProductAllToAll(call, 6); },
       kNever,
       {5}},
  };
}

}  // namespace acltape::opapi
