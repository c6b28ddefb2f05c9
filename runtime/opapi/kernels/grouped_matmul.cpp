// Products of groups: each group of rows with a matrix of its own, or each group of the inner dim.
#include <ATen/CPUFunctions.h>

#include "runtime/opapi/engine/kernel_table.h"
#include "runtime/opapi/kernels/moe.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

// The positions of the arguments in a version of the operator.
struct GroupedArguments {
  std::vector<int> absent;  // quantisation and fused activations, which the soft device lacks
  int bias, groups, split, type, list_type, act, out;
};
const GroupedArguments kV4 = {{3, 4, 5, 6, 7, 9, 10, 11}, 2, 8, 12, 13, 14, 15, 16};
const GroupedArguments kV5 = {{3, 4, 5, 6, 7, 9, 10, 11}, 2, 8, 12, 13, 14, 15, 17};

// The end of each group, from their ends or their lengths.
std::vector<int64_t> GroupEnds(const Tensor& groups, bool lengths, int64_t rows) {
  const Tensor ends = lengths ? groups.cumsum(0) : groups;
  std::vector<int64_t> result(ends.numel());
  int64_t last = 0;
  for (int64_t g = 0; g < ends.numel(); ++g) {
    result[g] = ends[g].item<int64_t>();
    TORCH_CHECK(result[g] >= last && result[g] <= rows, "group ", g, " ends at ", result[g],
                ", which lies outside of ", last, " to ", rows);
    last = result[g];
  }
  return result;
}

// out = a b (+ bias), in float32 for halves, which the library's product lacks in old versions.
void Multiply(Tensor out, const Tensor& a, const Tensor& b, const Tensor& bias) {
  if (out.numel() == 0) return;
  if (a.scalar_type() == at::kHalf) {
    out.copy_(at::mm(a.to(at::kFloat), b.to(at::kFloat)));
  } else {
    at::mm_out(out, a, b);
  }
  if (bias.defined()) out.add_(bias);
}

// One matrix of a list of one tensor with three dims, or of a list of matrices.
Tensor MatrixOf(const std::vector<Tensor>& weights, int64_t group) {
  return weights.size() == 1 && weights[0].dim() == 3 ? weights[0][group] : weights[group];
}
Tensor BiasOf(const std::vector<Tensor>& biases, int64_t group) {
  if (biases.empty()) return {};
  return biases.size() == 1 && biases[0].dim() == 2 ? biases[0][group] : biases[group];
}
int64_t MatrixCount(const std::vector<Tensor>& weights) {
  return weights.size() == 1 && weights[0].dim() == 3 ? weights[0].size(0)
                                                      : static_cast<int64_t>(weights.size());
}

// Each input with its matrix, into its output.
std::unique_ptr<Kernel> BindPairs(const Call& call, const GroupedArguments& at,
                                  const std::vector<Tensor>& x, const std::vector<Tensor>& w,
                                  const std::vector<Tensor>& biases) {
  const std::vector<Tensor> outs = call.Outs(at.out);
  if (w.size() != x.size()) call.RejectArg(1, "has another length than x");
  if (outs.size() != x.size()) call.RejectArg(at.out, "has another length than x");
  for (size_t i = 0; i < x.size(); ++i) {
    if (x[i].dim() != 2 || w[i].dim() != 2 || x[i].size(1) != w[i].size(0)) {
      call.RejectArg(1, "does not fit x");
    }
    call.ExpectSizes(at.out, outs[i], {x[i].size(0), w[i].size(1)});
  }
  return MakeKernel([=] {
    for (size_t i = 0; i < x.size(); ++i) {
      Multiply(outs[i], x[i], w[i], BiasOf(biases, static_cast<int64_t>(i)));
    }
  });
}

// (x, weight, bias?, ..., groupList?, ..., splitItem, groupType, groupListType, actType, out, ...)
std::unique_ptr<Kernel> BindGroupedMatmul(const Call& call, const GroupedArguments& at) {
  for (int i : at.absent) {
    if (!call.IsAbsent(i)) call.RejectArg(i, "is given, which the soft device lacks");
  }
  if (call.Int(at.act) != 0)
    call.RejectArg(at.act, "names an activation; the soft device has none");
  const std::vector<Tensor> x = call.Views(0), w = call.Views(1);
  const std::vector<Tensor> biases =
      call.IsAbsent(at.bias) ? std::vector<Tensor>() : call.Views(at.bias);
  if (x.empty() || w.empty()) call.RejectArg(0, "has no tensors");
  for (const Tensor& weight : w) {
    if (weight.scalar_type() != x[0].scalar_type() || !at::isFloatingType(x[0].scalar_type())) {
      call.RejectArg(1, "has another dtype than x, or none with fractions");
    }
  }
  const int64_t type = call.Int(at.type);
  if (type == -1) return BindPairs(call, at, x, w, biases);
  if (type != 0 && type != 2) call.RejectArg(at.type, "must be -1, 0 (rows) or 2 (inner dim)");
  const std::vector<Tensor> outs = call.Outs(at.out);
  if (x.size() != 1) call.RejectArg(0, "must hold one tensor when it is grouped");
  if (outs.size() != 1) call.RejectArg(at.out, "must hold one tensor when x is grouped");
  if (call.IsAbsent(at.groups)) call.RejectArg(at.groups, "is absent");
  const Tensor groups = call.View(at.groups), a = x[0], out = outs[0];
  call.ExpectRank(at.groups, groups, 1);
  call.ExpectIndex(at.groups, groups);
  call.ExpectRank(0, a, 2);
  const int64_t list_type = call.Int(at.list_type);
  if (list_type != 0 && list_type != 1) {
    call.RejectArg(at.list_type, "must be 0 (ends of groups) or 1 (their lengths)");
  }
  const bool lengths = list_type == 1;
  if (type == 2) {
    const Tensor b = w[0];
    if (w.size() != 1 || b.dim() != 2 || b.size(0) != a.size(1)) {
      call.RejectArg(1, "must be one matrix with as many rows as x has columns");
    }
    call.ExpectSizes(at.out, out, {groups.size(0), a.size(0), b.size(1)});
    return MakeKernel([=] {
      int64_t begin = 0, group = 0;
      for (const int64_t end : GroupEnds(groups, lengths, a.size(1))) {
        Multiply(out[group++], a.slice(1, begin, end), b.slice(0, begin, end), Tensor());
        begin = end;
      }
    });
  }
  if (MatrixCount(w) != groups.size(0)) call.RejectArg(1, "has not one matrix per group");
  const Tensor first = MatrixOf(w, 0);
  if (first.dim() != 2 || first.size(0) != a.size(1)) call.RejectArg(1, "does not fit x");
  call.ExpectSizes(at.out, out, {a.size(0), first.size(1)});
  return MakeKernel([=] {
    int64_t begin = 0, group = 0;
    for (const int64_t end : GroupEnds(groups, lengths, a.size(0))) {
      Multiply(out.slice(0, begin, end), a.slice(0, begin, end), MatrixOf(w, group),
               BiasOf(biases, group));
      begin = end;
      ++group;
    }
  });
}

}  // namespace

KernelRows GroupedMatmulRows() {
  const auto version = [](const GroupedArguments& at) {
    return [&at](const Call& call) { return BindGroupedMatmul(call, at); };
  };
  KernelRows rows = {
      {"aclnnGroupedMatmulV4", version(kV4), Widen::kNever, {17, 18}},
      {"aclnnGroupedMatmulV5", version(kV5), Widen::kNever, {18, 19}},
  };
  // The experts of a mixture are such products.
  for (KernelRows more : {MoeGatingRows(), MoeRoutingRows()}) {
    for (KernelRow& row : more) rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace acltape::opapi
