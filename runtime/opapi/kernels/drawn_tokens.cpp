// Tokens that are drawn from the likeliest ones of each row of logits: those of the k greatest,
// those whose probabilities add up to p, those of at least a part of the greatest probability.
#include <ATen/ATen.h>

#include <algorithm>
#include <limits>

#include "runtime/opapi/kernels/whole.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

// Positions of the arguments; -1: none.
struct DrawArguments {
  int q, least, epsilon, gives_logits, most, are_logits, gives_kept;
  int drawn, logits_out, places_out, kept_out;
};
constexpr DrawArguments kDraw = {3, -1, 4, 5, -1, -1, -1, 7, 8, -1, -1};
constexpr DrawArguments kDrawV2 = {3, 4, 5, 6, 8, 9, 10, 11, 12, 13, 14};

// The rules of a row: those of the second version count a probability of exactly p differently, and
// take every p below 1.
struct DrawRules {
  int64_t most = 1024;  // the greatest k that counts
  bool second = false;
  bool are_logits = true;  // false: they are probabilities
};

// Tokens of a row that are left to draw from.
struct KeptTokens {
  Tensor places, weights;  // positions in the row, and their probabilities

  void Select(const Tensor& wanted) {
    const Tensor chosen = wanted.nonzero().flatten();
    places = places.index_select(0, chosen);
    weights = weights.index_select(0, chosen);
  }
  void SelectFirst() {
    places = places.narrow(0, 0, 1);
    weights = weights.narrow(0, 0, 1);
  }
};

// `least` is the part of the greatest probability that others need; 0: none.
KeptTokens KeepTokens(const Tensor& row, int64_t k, float p, float least, const DrawRules& rules) {
  const int64_t tokens = row.size(0);
  const bool by_count = k >= 1 && k <= std::min(rules.most, tokens);
  const bool by_sum = p < 1 && (rules.second || p > 0);
  KeptTokens kept = {at::arange(tokens), row};
  if (by_count || by_sum || least >= 1) {
    std::tie(kept.weights, kept.places) = at::sort(row, /*stable=*/true, 0, /*descending=*/true);
  }
  if (by_count) {
    kept.weights = kept.weights.narrow(0, 0, k);
    kept.places = kept.places.narrow(0, 0, k);
  }
  const Tensor logits = kept.weights;
  if (rules.are_logits) kept.weights = at::softmax(logits, 0);
  if (by_sum && p > 0) {
    const Tensor before = kept.weights.cumsum(0) - kept.weights;
    const Tensor wanted = rules.second ? before < p : before <= p;
    kept.Select(wanted);
    if (!rules.second) {
      kept.weights = at::softmax(logits.index_select(0, wanted.nonzero().flatten()), 0);
    }
  } else if (by_sum) {
    kept.SelectFirst();
    if (rules.are_logits) kept.weights = at::ones_like(kept.weights);
  }
  if (least >= 1) {
    kept.SelectFirst();
  } else if (least > 0) {
    kept.Select(kept.weights >= kept.weights.max() * least);
  }
  return kept;
}

Tensor ReadOfRows(const Call& call, int i, int64_t rows, at::ScalarType dtype) {
  const Tensor tensor = call.View(i);
  ExpectDtypes(call, i, tensor, {dtype});
  call.ExpectSizes(i, tensor, {rows});
  return tensor;
}

// An output of the form of logits, where it is asked for.
Tensor ReadRowsOut(const Call& call, int i, bool wanted, at::ScalarType dtype) {
  if (!wanted) return {};
  const Tensor out = call.Out(i);
  ExpectDtypes(call, i, out, {dtype});
  call.ExpectSizes(i, out, call.View(0).sizes());
  return out;
}

DrawRules ReadDrawRules(const Call& call, const DrawArguments& at) {
  DrawRules rules;
  if (at.most < 0) return rules;
  rules.second = true;
  rules.most = (call.Int(at.most) + 7) / 8 * 8;
  if (call.Int(at.most) < 1 || rules.most > 1024) {
    call.RejectArg(at.most, "must be between 1 and 1024");
  }
  rules.are_logits = call.Bool(at.are_logits);
  return rules;
}

// (logits [rows, tokens], topK [rows], topP [rows], q?, [minPs?,] eps, isNeedLogits, topKGuess,
// [ksMax, inputIsLogits, isNeedSampleResult,] logitsSelectIdx, logitsTopKPSelect, [logitsIdx,
// logitsSortMasked]): the kept token with the greatest probability, divided by |q| + eps of its
// place among the kept ones. Those are given instead where isNeedSampleResult says so, and
// logitsSelectIdx is zeros then. topKGuess changes nothing in results.
std::unique_ptr<Kernel> BindTopKTopPSample(const Call& call, const DrawArguments& at) {
  const Tensor logits = call.View(0);
  const DrawRules rules = ReadDrawRules(call, at);
  call.ExpectRank(0, logits, 2);
  if (rules.second) ExpectDtypes(call, 0, logits, {at::kHalf, at::kBFloat16, at::kFloat});
  if (!rules.second) ExpectDtypes(call, 0, logits, {at::kHalf, at::kBFloat16});
  if (logits.numel() == 0) call.RejectArg(0, "is empty");
  const int64_t rows = logits.size(0);
  const Tensor ks = ReadOfRows(call, 1, rows, at::kInt);
  const Tensor ps = ReadOfRows(call, 2, rows, logits.scalar_type());
  const bool gives_kept = rules.second && call.Bool(at.gives_kept);
  Tensor q, parts;
  if (!call.IsAbsent(at.q)) {
    q = call.View(at.q);
    ExpectDtypes(call, at.q, q, {at::kFloat});
    call.ExpectSizes(at.q, q, logits.sizes());
    if (gives_kept) call.RejectArg(at.q, "is given beside isNeedSampleResult");
  }
  if (rules.second && !call.IsAbsent(at.least)) {
    parts = ReadOfRows(call, at.least, rows, logits.scalar_type());
  }
  const double epsilon = call.Real(at.epsilon);
  const Tensor drawn = call.Out(at.drawn);
  ExpectDtypes(call, at.drawn, drawn, {at::kLong});
  call.ExpectSizes(at.drawn, drawn, {rows});
  const Tensor logits_out =
      ReadRowsOut(call, at.logits_out, call.Bool(at.gives_logits), at::kFloat);
  const Tensor places_out = ReadRowsOut(call, at.places_out, gives_kept, at::kLong);
  const Tensor kept_out = ReadRowsOut(call, at.kept_out, gives_kept, at::kFloat);
  const double other =
      rules.second && rules.are_logits ? -std::numeric_limits<double>::infinity() : 0;
  return MakeKernel([=] {
    const Tensor wide = logits.to(at::kFloat);
    Tensor best = at::zeros({rows}, at::kLong);
    if (logits_out.defined()) logits_out.fill_(other);
    for (const Tensor& out : {places_out, kept_out}) {
      if (out.defined()) out.zero_();
    }
    for (int64_t i = 0; i < rows; ++i) {
      const float least = parts.defined() ? parts[i].item().toFloat() : 0;
      const KeptTokens kept =
          KeepTokens(wide[i], ks[i].item<int32_t>(), ps[i].item().toFloat(), least, rules);
      const int64_t count = kept.places.size(0);
      if (gives_kept) {
        places_out[i].narrow(0, 0, count).copy_(kept.places);
        kept_out[i].narrow(0, 0, count).copy_(kept.weights);
      } else {
        Tensor weights = kept.weights;
        if (q.defined()) weights = weights / (q[i].narrow(0, 0, count).abs() + epsilon);
        best[i] = kept.places[weights.argmax()];
      }
      if (logits_out.defined()) {
        logits_out[i].index_copy_(0, kept.places, wide[i].index_select(0, kept.places));
      }
    }
    drawn.copy_(best);
  });
}

}  // namespace

KernelRows DrawnTokenRows() {
  const auto version = [](const DrawArguments& at) {
    return [&at](const Call& call) { return BindTopKTopPSample(call, at); };
  };
  return {
      {"aclnnTopKTopPSample", version(kDraw), Widen::kNever, {3, 8}},
      {"aclnnTopKTopPSampleV2", version(kDrawV2), Widen::kNever, {3, 4, 12, 13, 14}},
  };
}

}  // namespace acltape::opapi
