// The choice of experts: the best of each row of scores. Among equal scores the lowest index wins.
#include <ATen/ATen.h>

#include <limits>

#include "runtime/opapi/engine/target.h"
#include "runtime/opapi/kernels/moe.h"
#include "runtime/opapi/kernels/whole.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

struct Best {
  Tensor values, indices;
};

Best BestOf(const Tensor& scores, int64_t k) {
  const auto sorted = at::sort(scores, /*stable=*/c10::optional<bool>(true), /*dim=*/-1,
                               /*descending=*/true);
  return {std::get<0>(sorted).narrow(-1, 0, k), std::get<1>(sorted).narrow(-1, 0, k)};
}

std::vector<int64_t> ChosenSizes(const Operand& x, int64_t k) {
  std::vector<int64_t> sizes = x.sizes().vec();
  sizes.back() = k;
  return sizes;
}

// Scores of at least 2 dims, from which `k` are taken.
void ExpectGatingScores(const Call& call, const Operand& x, int k_index) {
  ExpectFloats(call, 0, x.view());
  if (x.dim() != 2 && x.dim() != 3) call.RejectArg(0, "must have 2 or 3 dims");
  const int64_t k = call.Int(k_index);
  if (k < 1 || k > x.sizes().back()) {
    call.RejectArg(k_index, "must be between 1 and the number of experts");
  }
}

Tensor ReadFinished(const Call& call, int i, const Operand& x) {
  if (call.IsAbsent(i)) return {};
  const Tensor finished = call.View(i);
  if (finished.scalar_type() != at::kBool) call.RejectArg(i, "is not of dtype bool");
  call.ExpectSizes(i, finished, x.sizes().slice(0, x.dim() - 1));
  return finished;
}

// Rows that are finished go to the expert after the last one.
Tensor WithoutFinished(const Tensor& indices, const Tensor& finished, int64_t experts) {
  return finished.defined() ? indices.masked_fill(finished.unsqueeze(-1), experts) : indices;
}

void ExpectIndexOut(const Call& call, int i, at::IntArrayRef sizes) {
  call.ExpectSizes(i, call.View(i), sizes);
  call.ExpectIndex(i, call.View(i));
}

// (x, finished?, k, y, expertIdx, rowIdx): rowIdx counts the rows, then the choices.
std::unique_ptr<Kernel> BindGatingSoftmax(const Call& call) {
  const Operand x = call.In(0);
  ExpectGatingScores(call, x, 2);
  const Tensor finished = ReadFinished(call, 1, x);
  const int64_t k = call.Int(2), experts = x.sizes().back();
  const std::vector<int64_t> sizes = ChosenSizes(x, k);
  const Tensor y = call.Out(3), indices = call.Out(4), rows = call.Out(5);
  call.ExpectSizes(3, y, sizes);
  for (int i : {4, 5}) ExpectIndexOut(call, i, sizes);
  return MakeKernel([=] {
    const Best best = BestOf(at::softmax(x(), -1), k);
    y.copy_(best.values);
    indices.copy_(WithoutFinished(best.indices, finished, experts));
    const int64_t count = rows.numel() / k;
    rows.copy_(at::arange(count * k).reshape({k, count}).t().reshape(sizes));
  });
}

// (x, finished?, k, renorm, outputSoftmax, y, expertIdx, softmaxOut?): with renorm 1 the softmax is
// that of the chosen scores.
std::unique_ptr<Kernel> BindGatingSoftmaxV2(const Call& call) {
  const Operand x = call.In(0);
  ExpectGatingScores(call, x, 2);
  const Tensor finished = ReadFinished(call, 1, x);
  const int64_t k = call.Int(2), renorm = call.Int(3), experts = x.sizes().back();
  if (renorm != 0 && renorm != 1) call.RejectArg(3, "must be 0 or 1");
  const std::vector<int64_t> sizes = ChosenSizes(x, k);
  const Tensor y = call.Out(5), indices = call.Out(6);
  call.ExpectSizes(5, y, sizes);
  ExpectIndexOut(call, 6, sizes);
  Tensor all;
  if (renorm == 0 && call.Bool(4)) {
    all = call.Out(7);
    call.ExpectSizes(7, all, x.sizes());
  }
  return MakeKernel([=] {
    const Tensor scores = renorm == 0 ? at::softmax(x(), -1) : x();
    const Best best = BestOf(scores, k);
    y.copy_(renorm == 0 ? best.values : at::softmax(best.values, -1));
    indices.copy_(WithoutFinished(best.indices, finished, experts));
    if (all.defined()) all.copy_(scores);
  });
}

// Groups of experts: the best groups are chosen first, then experts among them.
struct Groups {
  int64_t count = 1, kept = 1;
  bool by_best_two = false;  // a group's score is the sum of its best two, not its best
};

Groups ReadGroups(const Call& call, int first, int64_t experts, int64_t k, int k_index) {
  Groups groups;
  groups.kept = call.Int(first);
  groups.count = call.Int(first + 1);
  const int64_t mode = call.Int(first + 2);
  if (groups.count < 1 || experts % groups.count != 0) {
    call.RejectArg(first + 1, "does not divide the number of experts");
  }
  if (groups.kept < 1 || groups.kept > groups.count) {
    call.RejectArg(first, "must be between 1 and groupCount");
  }
  if (mode != 0 && mode != 1) call.RejectArg(first + 2, "must be 0 (best) or 1 (sum of best two)");
  groups.by_best_two = mode == 1;
  const int64_t each = experts / groups.count;
  if (groups.by_best_two && each < 2) call.RejectArg(first + 2, "needs groups of two experts");
  if (k < 1 || k > each * groups.kept) {
    call.RejectArg(k_index, "must be between 1 and the number of experts in the chosen groups");
  }
  return groups;
}

// The scores with minus infinity for the experts of groups that are not chosen.
Tensor InChosenGroups(const Tensor& scores, const Groups& groups) {
  if (groups.count == 1) return scores;
  const Tensor apart = scores.unflatten(-1, {groups.count, scores.size(-1) / groups.count});
  const Tensor of_group = groups.by_best_two ? BestOf(apart, 2).values.sum(-1) : apart.amax(-1);
  const Tensor left_out = at::ones(of_group.sizes(), at::TensorOptions(at::kBool))
                              .scatter(-1, BestOf(of_group, groups.kept).indices, 0);
  return apart.masked_fill(left_out.unsqueeze(-1), -std::numeric_limits<double>::infinity())
      .flatten(-2);
}

// (x, bias?, k, kGroup, groupCount, groupSelectMode, renorm, normType, outFlag,
// routedScalingFactor, eps, y, expertIdx, out): the bias takes part in the choice only.
std::unique_ptr<Kernel> BindGatingTopK(const Call& call) {
  const Operand x = call.In(0), bias = call.OptionalIn(1);
  ExpectFloats(call, 0, x.view());
  if (x.dim() == 0) call.RejectArg(0, "has no dims");
  const int64_t experts = x.sizes().back(), k = call.Int(2);
  if (bias.defined()) call.ExpectSizes(1, bias.view(), {experts});
  const Groups groups = ReadGroups(call, 3, experts, k, 2);
  const int64_t renorm = call.Int(6), norm = call.Int(7);
  if (renorm != 0 && renorm != 1) call.RejectArg(6, "must be 0 or 1");
  if (norm != 0 && norm != 1) call.RejectArg(7, "must be 0 (softmax) or 1 (sigmoid)");
  const double factor = call.Real(9), epsilon = call.Real(10);
  const std::vector<int64_t> sizes = ChosenSizes(x, k);
  const Tensor y = call.Out(11), indices = call.Out(12);
  call.ExpectSizes(11, y, sizes);
  ExpectIndexOut(call, 12, sizes);
  Tensor all;
  if (call.Bool(8)) {
    all = call.Out(13);
    call.ExpectSizes(13, all, x.sizes());
  }
  return MakeKernel([=] {
    const Tensor scores = norm == 0 ? at::softmax(x(), -1) : at::sigmoid(x());
    const Tensor wanted = bias.defined() ? scores + bias() : scores;
    const Tensor chosen = BestOf(InChosenGroups(wanted, groups), k).indices;
    Tensor weights = scores.gather(-1, chosen);
    if (norm == 1 || renorm == 1) {
      weights = weights / (weights.sum(-1, /*keepdim=*/true) + epsilon);
    }
    y.copy_(weights * factor);
    indices.copy_(chosen);
    if (all.defined()) all.copy_(scores);
  });
}

// The values of normType: scores are a softmax of the logits, sigmoids, or roots of softplus.
constexpr int64_t kSoftmax = 0, kSigmoid = 1, kRootOfSoftplus = 2;
Tensor ScoresOf(const Tensor& logits, int64_t norm) {
  if (norm == kSoftmax) return at::softmax(logits, -1);
  if (norm == kSigmoid) return at::sigmoid(logits);
  return (logits.exp() + 1).log().sqrt();
}

// The experts of each token by a table: row `ids[i]` of `table`.
Tensor ExpertsByTable(const Tensor& ids, const Tensor& table, int64_t experts,
                      const std::string& op) {
  const Tensor tokens = ids.to(at::kLong).flatten(), wide = table.to(at::kLong);
  TORCH_CHECK(tokens.numel() == 0 || (tokens.min().item<int64_t>() >= 0 &&
                                      tokens.max().item<int64_t>() < wide.size(0)),
              op, ": a token is outside of the table of ", wide.size(0));
  Tensor chosen = wide.index_select(0, tokens);
  TORCH_CHECK(chosen.numel() == 0 ||
                  (chosen.min().item<int64_t>() >= 0 && chosen.max().item<int64_t>() < experts),
              op, ": the table names an expert outside of ", experts);
  return chosen;
}

// Holds what differs between the operators with a table of experts.
struct GatingByTable {
  const char* name;
  int64_t last_renorm, last_norm;
  bool needs_both;      // one of tokens and table alone is refused
  int64_t most_chosen;  // by a table
};
constexpr GatingByTable kGatingHash = {"aclnnMoeGatingTopKHash", 0, kRootOfSoftplus, true, 2048};
constexpr GatingByTable kGatingV2 = {"aclnnMoeGatingTopKV2", 1, kSigmoid, false, 64};

// The experts of a group fill up to a multiple of this on a device, which has 2048 in all.
constexpr int64_t kGroupStep = 32, kMostExperts = 2048;

// (x, bias?, inputIds?, tid2eid?, k, kGroup, groupCount, groupSelectMode, renorm, normType,
// outFlag, routedScalingFactor, eps, y, expertIdx, out): like the one before, but a table may say
// which experts a token has, and weights of a softmax keep their sum unless renorm is 1.
std::unique_ptr<Kernel> BindGatingByTable(const Call& call, const GatingByTable& at) {
  const Operand x = call.In(0), bias = call.OptionalIn(1);
  call.ExpectRank(0, x.view(), 2);
  ExpectFloats(call, 0, x.view());
  const int64_t experts = x.sizes()[1], k = call.Int(4), norm = call.Int(9);
  if (experts < 1 || experts > 2048) call.RejectArg(0, "must have 1 to 2048 experts");
  if (bias.defined()) {
    call.ExpectSizes(1, bias.view(), {experts});
    if (bias.view().scalar_type() != x.view().scalar_type()) {
      call.RejectArg(1, "has another dtype than x");
    }
  }
  const Groups groups = ReadGroups(call, 5, experts, k, 4);
  const int64_t renorm = call.Int(8);
  if (renorm < 0 || renorm > at.last_renorm) {
    call.RejectArg(8, at.last_renorm == 0 ? "must be 0" : "must be 0 or 1");
  }
  if (norm < kSoftmax || norm > at.last_norm) {
    call.RejectArg(9, at.last_norm == kSigmoid
                          ? "must be 0 (softmax) or 1 (sigmoid)"
                          : "must be 0 (softmax), 1 (sigmoid) or 2 (softplus)");
  }
  const int64_t steps = (experts / groups.count + kGroupStep - 1) / kGroupStep;
  if (!at.needs_both && steps * kGroupStep * groups.count > kMostExperts) {
    call.RejectArg(6, "makes groups that need more than 2048 places in steps of 32");
  }
  if (norm == kRootOfSoftplus && groups.count != 1) call.RejectArg(9, "is 2 with several groups");
  Tensor ids, table;
  if (at.needs_both && call.IsAbsent(2) != call.IsAbsent(3)) {
    call.RejectArg(3, "and inputIds need each other");
  }
  if (!call.IsAbsent(2) && !call.IsAbsent(3)) {
    if (k > at.most_chosen) call.RejectArg(4, "is above 64 with a table of experts");
    ids = call.View(2);
    table = call.View(3);
    call.ExpectIndex(2, ids);
    call.ExpectIndex(3, table);
    if (ids.numel() != x.sizes()[0]) call.RejectArg(2, "has not one token for each row of x");
    call.ExpectRank(3, table, 2);
    call.ExpectSizes(3, table, {table.size(0), k});
    if (groups.kept != groups.count && groups.count != experts) {
      call.RejectArg(3, "is given where groups of experts are chosen");
    }
  }
  const double factor = call.Real(11), epsilon = call.Real(12);
  const std::vector<int64_t> sizes = ChosenSizes(x, k);
  const Tensor y = call.Out(13), indices = call.Out(14);
  call.ExpectSizes(13, y, sizes);
  if (y.scalar_type() != x.view().scalar_type()) call.RejectArg(13, "has another dtype than x");
  call.ExpectSizes(14, indices, sizes);
  if (indices.scalar_type() != at::kInt) call.RejectArg(14, "is not of dtype int32");
  const bool wants_all = call.Bool(10);
  if (at.needs_both || wants_all) {
    call.ExpectSizes(15, call.Out(15), x.sizes());
    if (call.Out(15).scalar_type() != at::kFloat) call.RejectArg(15, "is not of dtype float32");
  }
  const Tensor all = wants_all ? call.Out(15) : Tensor();
  return MakeKernel([=] {
    const Tensor scores = ScoresOf(x(), norm);
    const Tensor wanted = bias.defined() ? scores + bias() : scores;
    const Tensor chosen = table.defined() ? ExpertsByTable(ids, table, experts, at.name)
                                          : BestOf(InChosenGroups(wanted, groups), k).indices;
    Tensor weights = scores.gather(-1, chosen);
    if (norm != kSoftmax || renorm == 1) {
      weights = weights / (weights.sum(-1, /*keepdim=*/true) + epsilon);
    }
    y.copy_(weights * factor);
    indices.copy_(chosen);
    if (all.defined()) all.copy_(scores);
  });
}

}  // namespace

KernelRows MoeGatingRows() {
  constexpr Widen kBoth = Widen::kHalfAndBfloat16;
  const auto by_table = [](const GatingByTable& at) {
    return [&at](const Call& call) { return BindGatingByTable(call, at); };
  };
  return {
      {"aclnnMoeGatingTopKSoftmax", BindGatingSoftmax, kBoth},
      {"aclnnMoeGatingTopKSoftmaxV2", BindGatingSoftmaxV2, kBoth},
      {"aclnnMoeGatingTopK", BindGatingTopK, kBoth, {13}},
      {"aclnnMoeGatingTopKHash", by_table(kGatingHash), kBoth},
      {"aclnnMoeGatingTopKV2", by_table(kGatingV2), kBoth, {15}},
  };
}

}  // namespace acltape::opapi
