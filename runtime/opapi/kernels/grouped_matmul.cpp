// Products of groups: each group of rows with a matrix of its own, or each group of the inner dim.
// Rows after the last group, which a device leaves unwritten, are zeros.
#include <ATen/CPUFunctions.h>

#include "runtime/opapi/engine/kernel_table.h"
#include "runtime/opapi/kernels/expect_dtypes.h"
#include "runtime/opapi/kernels/group_ends.h"
#include "runtime/opapi/kernels/moe.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

// The positions of the arguments in a version of the operator; -1: none.
struct GroupedArguments {
  std::vector<int> absent;  // quantisation and fused activations, which the soft device lacks
  int bias, groups, split, type, list_type, act, out;
};
const GroupedArguments kFirst = {{3, 4, 5, 6}, 2, 7, 8, -1, -1, -1, 9};
const GroupedArguments kV2 = {{3, 4, 5, 6}, 2, 7, 8, 9, -1, -1, 10};
const GroupedArguments kV3 = {{3, 4, 5, 6}, 2, 7, 8, 9, -1, -1, 10};
const GroupedArguments kV4 = {{3, 4, 5, 6, 7, 9, 10, 11}, 2, 8, 12, 13, 14, 15, 16};
const GroupedArguments kV5 = {{3, 4, 5, 6, 7, 9, 10, 11}, 2, 8, 12, 13, 14, 15, 17};
const GroupedArguments kWeightNz = {{3, 4, 5, 6, 7, 9, 10, 11}, 2, 8, 12, 13, 14, 15, 18};

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

// The operands that all versions have.
struct GroupedOperands {
  std::vector<Tensor> x, weights, biases;
};

GroupedOperands ReadOperands(const Call& call, const GroupedArguments& at) {
  for (int i : at.absent) {
    if (!call.IsAbsent(i)) call.RejectArg(i, "is given, which the soft device lacks");
  }
  GroupedOperands operands{call.Views(0), call.Views(1), {}};
  if (!call.IsAbsent(at.bias)) operands.biases = call.Views(at.bias);
  if (operands.x.empty() || operands.weights.empty()) call.RejectArg(0, "has no tensors");
  const at::ScalarType dtype = operands.x[0].scalar_type();
  for (const Tensor& weight : operands.weights) {
    if (weight.scalar_type() != dtype || !at::isFloatingType(dtype)) {
      call.RejectArg(1, "has another dtype than x, or none with fractions");
    }
  }
  return operands;
}

// The rows of each group, of one tensor that `ends` cuts or of a tensor each.
std::vector<Tensor> CutRows(const Call& call, const GroupedArguments& at,
                            const std::vector<Tensor>& x, size_t groups) {
  const std::vector<int64_t> ends = call.Ints(at.groups);
  std::vector<Tensor> parts;
  int64_t begin = 0;
  if (x.size() == groups) {
    parts = x;
  } else if (x.size() != 1 || ends.size() != groups) {
    call.RejectArg(at.groups, "has not one entry for each matrix");
  }
  for (const int64_t end : x.size() == 1 ? ends : std::vector<int64_t>()) {
    if (end < begin || end > x[0].size(0)) call.RejectArg(at.groups, "does not cut x into groups");
    if (groups > 1) parts.push_back(x[0].slice(0, begin, end));
    begin = end;
  }
  return parts;
}

// (x, weight, bias?, ..., groupList?, splitItem, [groupType,] y), where the groups' ends are known
// on the host: into one tensor, or into a tensor for each group
std::unique_ptr<Kernel> BindHostGroups(const Call& call, const GroupedArguments& at) {
  const GroupedOperands operands = ReadOperands(call, at);
  if (at.type >= 0 && call.Int(at.type) != -1 && call.Int(at.type) != 0) {
    call.RejectArg(at.type, "must be -1 or 0 (rows)");
  }
  for (const Tensor& part : operands.x) call.ExpectRank(0, part, 2);
  const auto groups = static_cast<size_t>(MatrixCount(operands.weights));
  const std::vector<Tensor> parts = CutRows(call, at, operands.x, groups);
  if (!operands.biases.empty() &&
      operands.biases.size() != (operands.biases[0].dim() == 2 ? 1 : groups)) {
    call.RejectArg(at.bias, "has another length than weight");
  }
  const int64_t split = call.Int(at.split);
  if (split < 0 || split > 3) call.RejectArg(at.split, "must be 0 to 3");
  std::vector<Tensor> outs = call.Outs(at.out);
  int64_t rows = 0;
  for (const Tensor& part : parts) rows += part.size(0);
  if (split >= 2) {
    if (outs.size() != 1) call.RejectArg(at.out, "must hold one tensor as splitItem says");
    const Tensor whole = outs[0];
    call.ExpectSizes(at.out, whole, {rows, MatrixOf(operands.weights, 0).size(-1)});
    outs.clear();
    int64_t begin = 0;
    for (const Tensor& part : parts) {
      outs.push_back(whole.slice(0, begin, begin + part.size(0)));
      begin += part.size(0);
    }
  } else if (outs.size() != parts.size()) {
    call.RejectArg(at.out, "has not one tensor for each group as splitItem says");
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    const Tensor weight = MatrixOf(operands.weights, static_cast<int64_t>(i));
    if (weight.dim() != 2 || weight.size(0) != parts[i].size(1)) {
      call.RejectArg(1, "does not fit x");
    }
    call.ExpectSizes(at.out, outs[i], {parts[i].size(0), weight.size(1)});
  }
  return MakeKernel([=] {
    for (size_t i = 0; i < parts.size(); ++i) {
      const auto group = static_cast<int64_t>(i);
      Multiply(outs[i], parts[i], MatrixOf(operands.weights, group),
               BiasOf(operands.biases, group));
    }
  });
}

// (x, weight, bias?, ..., groupList?, ..., splitItem, groupType, groupListType, actType, out, ...)
std::unique_ptr<Kernel> BindGroupedMatmul(const Call& call, const GroupedArguments& at) {
  if (at.act >= 0 && call.Int(at.act) != 0)
    call.RejectArg(at.act, "names an activation; the soft device has none");
  const GroupedOperands operands = ReadOperands(call, at);
  const std::vector<Tensor>&x = operands.x, &w = operands.weights, &biases = operands.biases;
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
  const int64_t list_type = at.list_type < 0 ? 0 : call.Int(at.list_type);
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
    out.slice(0, begin).zero_();
  });
}

// (x, weight, groupList [groups, 2], transposeWeight, out): the list has an expert and the number
// of its rows for each group, and ends at the first group without rows.
std::unique_ptr<Kernel> BindMoeGroupedMatmul(const Call& call) {
  const std::vector<Tensor> x = call.Views(0), weights = call.Views(1), outs = call.Outs(4);
  for (int i : {0, 1, 4}) {
    if ((i == 0 ? x : i == 1 ? weights : outs).size() != 1)
      call.RejectArg(i, "must hold one tensor");
  }
  const Tensor rows = x[0], weight = weights[0], out = outs[0], groups = call.View(2);
  const bool transposed = call.Bool(3);
  call.ExpectRank(0, rows, 2);
  call.ExpectRank(1, weight, 3);
  if (rows.scalar_type() != at::kHalf && rows.scalar_type() != at::kBFloat16) {
    call.RejectArg(0, "is neither of dtype float16 nor bfloat16");
  }
  for (int i : {1, 4}) {
    if ((i == 1 ? weight : out).scalar_type() != rows.scalar_type()) {
      call.RejectArg(i, "has another dtype than x");
    }
  }
  call.ExpectRank(2, groups, 2);
  call.ExpectIndex(2, groups);
  if (groups.size(1) != 2)
    call.RejectArg(2, "must have an expert and a number of rows in each row");
  if (weight.size(transposed ? 2 : 1) != rows.size(1)) call.RejectArg(1, "does not fit x");
  call.ExpectSizes(4, out, {rows.size(0), weight.size(transposed ? 1 : 2)});
  return MakeKernel([=] {
    const Tensor list = groups.to(at::kLong).contiguous();
    const auto* entry = list.data_ptr<int64_t>();
    int64_t begin = 0;
    for (int64_t g = 0; g < list.size(0) && entry[2 * g + 1] > 0; ++g) {
      const int64_t expert = entry[2 * g], end = begin + entry[2 * g + 1];
      TORCH_CHECK(expert >= 0 && expert < weight.size(0), "group ", g, " names expert ", expert,
                  " of ", weight.size(0));
      TORCH_CHECK(end <= rows.size(0), "group ", g, " ends at row ", end, " of ", rows.size(0));
      const Tensor matrix = transposed ? weight[expert].t() : weight[expert];
      Multiply(out.slice(0, begin, end), rows.slice(0, begin, end), matrix, Tensor());
      begin = end;
    }
    out.slice(0, begin).zero_();
  });
}

// (x, weight, groupList, yRef, transposeX, transposeWeight, groupType): each group of rows, which
// the list gives the ends of, adds x^T weight to its part of yRef. The vendor's page is
// aclnnGroupedMatmulAdd; its program looks at the number of yRef's elements only.
std::unique_ptr<Kernel> BindGroupedMatmulAdd(const Call& call) {
  const Operand x = call.In(0), weight = call.In(1);
  const Tensor groups = call.View(2), sums = call.Out(3);
  call.ExpectRank(0, x.view(), 2);
  call.ExpectRank(1, weight.view(), 2);
  ExpectDtypes(call, 0, x.view(), {at::kHalf, at::kBFloat16});
  ExpectDtypes(call, 1, weight.view(), {x.view().scalar_type()});
  if (weight.sizes()[0] != x.sizes()[0]) call.RejectArg(1, "has another number of rows than x");
  call.ExpectRank(2, groups, 1);
  ExpectDtypes(call, 2, groups, {at::kLong});
  ExpectDtypes(call, 3, sums, {at::kFloat});
  if (!call.Bool(4)) call.RejectArg(4, "must be true");
  if (call.Bool(5)) call.RejectArg(5, "must be false");
  if (call.Int(6) != 2) call.RejectArg(6, "must be 2: groups of the rows of x");
  const int64_t rows = x.sizes()[0], m = x.sizes()[1], n = weight.sizes()[1];
  if (sums.numel() != groups.numel() * m * n) {
    call.RejectArg(3, "has not one matrix for each group");
  }
  return MakeKernel([=] {
    const Tensor products = at::zeros({groups.numel(), m, n});
    int64_t begin = 0, group = 0;
    for (const int64_t end : GroupEnds(groups, /*lengths=*/false, rows)) {
      if (products.numel() > 0) {
        products[group].copy_(at::mm(x().slice(0, begin, end).t(), weight().slice(0, begin, end)));
      }
      begin = end;
      ++group;
    }
    Tensor(sums).add_(products.view(sums.sizes()));
  });
}

}  // namespace

KernelRows GroupedMatmulRows() {
  const auto version = [](const GroupedArguments& at) {
    return [&at](const Call& call) { return BindGroupedMatmul(call, at); };
  };
  const auto on_host = [](const GroupedArguments& at) {
    return [&at](const Call& call) { return BindHostGroups(call, at); };
  };
  KernelRows rows = {
      {"aclnnGroupedMatmul", on_host(kFirst)},
      {"aclnnGroupedMatmulV2", on_host(kV2)},
      {"aclnnGroupedMatmulV3", version(kV3)},
      {"aclnnGroupedMatmulWeightNz", version(kWeightNz)},
      {"aclnnGroupedMatmulV4", version(kV4), Widen::kNever, {17, 18}},
      {"aclnnGroupedMatmulV5", version(kV5), Widen::kNever, {18, 19}},
      {"aclnnGroupedMatmulAdd", BindGroupedMatmulAdd, Widen::kHalfAndBfloat16},
      {"aclnnMoeGroupedMatmul", BindMoeGroupedMatmul},
      {"aclnnMoeGroupedMatmulWeightNz", BindMoeGroupedMatmul},
  };
  // The experts of a mixture are such products.
  for (KernelRows more : {MoeGatingRows(), MoeRoutingRows()}) {
    for (KernelRow& row : more) rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace acltape::opapi
