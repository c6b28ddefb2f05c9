// Tokens in the order of their experts where a map of [tokens, experts] says who goes where. Rows
// lie by expert, then by token. With padding each expert has the same number of rows, its capacity;
// else each token has k slots in `sortedIndices`, and a slot without an expert holds -1. The rules
// are those of the vendor's pages aclnnMoeTokenPermuteWithRoutingMap,
// aclnnMoeTokenUnpermuteWithRoutingMap and of their gradients.
#include <ATen/ATen.h>

#include "runtime/opapi/kernels/moe_rows.h"
#include "runtime/opapi/kernels/whole.h"
#include "runtime/opapi/kernels/within.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

constexpr Widen kWideRows = Widen::kHalfAndBfloat16;

void ExpectRoutedFloats(const Call& call, const std::vector<int>& positions) {
  for (int i : positions) {
    if (!call.IsAbsent(i)) {
      ExpectDtypes(call, i, call.View(i), {at::kFloat, at::kHalf, at::kBFloat16});
    }
  }
}

Tensor ReadMap(const Call& call, int i) {
  const Tensor map = call.View(i);
  ExpectDtypes(call, i, map, {at::kBool, at::kChar});
  call.ExpectRank(i, map, 2);
  return map;
}

// A vector of 32-bit indices.
Tensor ReadRowIndices(const Call& call, int i, int64_t count) {
  const Tensor index = call.View(i);
  ExpectDtypes(call, i, index, {at::kInt});
  call.ExpectSizes(i, index, {count});
  return index;
}

// How the rows belong to tokens and experts.
struct RoutedRows {
  int64_t tokens, experts, rows;
  bool padded;

  int64_t capacity() const { return rows / std::max<int64_t>(experts, 1); }
  int64_t k() const { return rows / std::max<int64_t>(tokens, 1); }
  // The expert of each row, with padding.
  Tensor Experts() const { return at::arange(rows).floor_divide(std::max<int64_t>(capacity(), 1)); }
};

// Rejects a number of rows that experts or tokens do not share evenly.
void ExpectEven(const Call& call, int i, const RoutedRows& routed) {
  const int64_t sharing = routed.padded ? routed.experts : routed.tokens;
  const bool even = sharing == 0 ? routed.rows == 0 : routed.rows % sharing == 0;
  if (!even) {
    call.RejectArg(i, "has " + std::to_string(routed.rows) + " rows, which " +
                          std::to_string(sharing) + (routed.padded ? " experts" : " tokens") +
                          " do not share evenly");
  }
}

// [experts, tokens] of truth values, in the order of the rows.
Tensor ByExpert(const Tensor& map) { return map.ne(0).t().contiguous(); }

// The values of [tokens, experts] that the map chooses, one for each of `rows` rows; 0 for rows
// after them.
Tensor ChosenValues(const Tensor& values, const Tensor& chosen, int64_t rows) {
  const Tensor found = values.t().masked_select(chosen);
  TORCH_CHECK(found.numel() <= rows, "routingMap chooses ", found.numel(),
              " rows, which is out of range for ", rows);
  return at::constant_pad_nd(found, {0, rows - found.numel()}, 0);
}

// The way back of ChosenValues.
Tensor SpreadByMap(const Tensor& values, const Tensor& chosen) {
  return at::zeros(chosen.sizes(), values.options()).masked_scatter(chosen, values).t();
}

// (tokens, routingMap, probs?, numOutTokens, dropAndPad, permuteTokens, permuteProbs?,
// sortedIndices)
std::unique_ptr<Kernel> BindPermuteByMap(const Call& call) {
  const Operand tokens = call.In(0), probs = call.OptionalIn(2);
  const Tensor map = ReadMap(call, 1);
  call.ExpectRank(0, tokens.view(), 2);
  ExpectRoutedFloats(call, {0, 2});
  const int64_t count = tokens.sizes()[0], width = tokens.sizes()[1], experts = map.size(1);
  call.ExpectSizes(1, map, {count, experts});
  if (probs.defined()) call.ExpectSizes(2, probs.view(), map.sizes());
  const int64_t wanted = call.Int(3);
  if (wanted < 0 || wanted > map.numel()) {
    call.RejectArg(3, "must be between 0 and " + std::to_string(map.numel()));
  }
  RoutedRows routed = {count, experts, wanted, call.Bool(4)};
  routed.rows = routed.padded ? routed.capacity() * experts : routed.k() * count;
  const Tensor out = call.Out(5), where = call.Out(7);
  call.ExpectSizes(5, out, {routed.rows, width});
  ReadRowIndices(call, 7, routed.rows);
  Tensor permuted_probs;
  if (probs.defined()) {
    permuted_probs = call.Out(6);
    call.ExpectSizes(6, permuted_probs, {routed.rows});
  }
  if (routed.padded) {
    return MakeKernel([=] {
      const auto sorted = at::sort(ByExpert(map).to(at::kChar), c10::optional<bool>(true),
                                   /*dim=*/1, /*descending=*/true);
      const Tensor from = std::get<1>(sorted).narrow(1, 0, routed.capacity());
      where.copy_(from.reshape(-1));
      out.copy_(tokens().index_select(0, from.reshape(-1)));
      if (probs.defined()) permuted_probs.copy_(probs().t().gather(1, from).reshape(-1));
    });
  }
  return MakeKernel([=] {
    const Tensor chosen = ByExpert(map), places = chosen.nonzero();
    const Tensor from = places.select(1, 1);
    // The number of an expert among those of its token.
    const Tensor rank = chosen.to(at::kLong).cumsum(0).sub(1).masked_select(chosen);
    const int64_t most = rank.numel() == 0 ? 0 : rank.max().item<int64_t>() + 1;
    TORCH_CHECK(most <= routed.k(), "routingMap has ", most,
                " experts for a token, which is out of range for ", routed.k());
    Tensor slots = at::full({routed.rows}, -1, at::TensorOptions(at::kLong));
    slots.index_copy_(0, from * routed.k() + rank, at::arange(from.numel()));
    where.copy_(slots);
    Tensor(out).zero_();
    out.narrow(0, 0, from.numel()).copy_(tokens().index_select(0, from));
    if (probs.defined()) permuted_probs.copy_(ChosenValues(probs(), chosen, routed.rows));
  });
}

// (permutedTokenOutputGrad, permutedProbsOutputGrad?, sortedIndices, routingMap?, numExperts,
// tokensNum, dropAndPad, tokensGrad, probsGrad?)
std::unique_ptr<Kernel> BindPermuteByMapGrad(const Call& call) {
  const Operand gradient = call.In(0), of_permuted = call.OptionalIn(1);
  call.ExpectRank(0, gradient.view(), 2);
  ExpectRoutedFloats(call, {0, 1});
  const int64_t width = gradient.sizes()[1];
  const RoutedRows routed = {call.Int(5), call.Int(4), gradient.sizes()[0], call.Bool(6)};
  for (int i : {4, 5}) {
    if (call.Int(i) < 1) call.RejectArg(i, "is less than 1");
  }
  ExpectEven(call, 0, routed);
  const Tensor where = ReadRowIndices(call, 2, routed.rows), out = call.Out(7);
  call.ExpectSizes(7, out, {routed.tokens, width});
  Tensor of_probs, map;
  if (of_permuted.defined()) {
    call.ExpectSizes(1, of_permuted.view(), {routed.rows});
    of_probs = call.Out(8);
    call.ExpectSizes(8, of_probs, {routed.tokens, routed.experts});
    if (!routed.padded) {
      if (call.IsAbsent(3)) call.RejectArg(3, "is absent, but a gradient of probs is given");
      map = ReadMap(call, 3);
      call.ExpectSizes(3, map, of_probs.sizes());
    }
  }
  return MakeKernel([=] {
    const Tensor index = where.to(at::kLong);
    if (routed.padded) {
      out.copy_(SumsOfRows(gradient(), index, routed.tokens));
      if (!of_probs.defined()) return;
      const Tensor places = Within(index, routed.tokens, "sortedIndices");
      const Tensor spread = at::zeros({routed.tokens * routed.experts}, of_permuted().options());
      spread.index_copy_(0, places * routed.experts + routed.Experts(), of_permuted());
      of_probs.copy_(spread.view(of_probs.sizes()));
      return;
    }
    const Tensor slots = RowsOrZeros(gradient(), index);
    out.copy_(slots.view({routed.tokens, routed.k(), width}).sum(1));
    if (of_probs.defined()) of_probs.copy_(SpreadByMap(of_permuted(), ByExpert(map)));
  });
}

// (permutedTokens, sortedIndices, routingMap?, probs?, paddedMode, restoreShape?, unpermutedTokens,
// outIndex, permuteTokenId, permuteProbs?): the last three are what the gradient needs. Entry i of
// outIndex is a row, and entry i of permuteTokenId its token.
std::unique_ptr<Kernel> BindUnpermuteByMap(const Call& call) {
  const Operand permuted = call.In(0), probs = call.OptionalIn(3);
  call.ExpectRank(0, permuted.view(), 2);
  ExpectRoutedFloats(call, {0, 3});
  const Tensor out = call.Out(6), out_index = call.Out(7), token_ids = call.Out(8);
  call.ExpectRank(6, out, 2);
  const int64_t width = permuted.sizes()[1];
  RoutedRows routed = {out.size(0), 0, permuted.sizes()[0], call.Bool(4)};
  call.ExpectSizes(6, out, {routed.tokens, width});
  const std::vector<int64_t> restored = call.Ints(5);
  if (!restored.empty() && restored != out.sizes().vec()) call.RejectArg(5, "is not out's shape");
  const Tensor where = ReadRowIndices(call, 1, routed.rows);
  for (int i : {7, 8}) ReadRowIndices(call, i, routed.rows);
  Tensor map, permuted_probs;
  if (probs.defined()) {
    if (call.IsAbsent(2)) call.RejectArg(2, "is absent, but probs are given");
    map = ReadMap(call, 2);
    routed.experts = map.size(1);
    for (int i : {2, 3}) call.ExpectSizes(i, call.View(i), {routed.tokens, routed.experts});
    permuted_probs = call.Out(9);
    call.ExpectSizes(9, permuted_probs, {routed.rows});
  }
  if (probs.defined() || !routed.padded) ExpectEven(call, 0, routed);
  return MakeKernel([=] {
    Tensor rows = permuted();
    if (routed.padded) {
      const Tensor index = Within(where, routed.tokens, "sortedIndices");
      const Tensor order = SortedPositions(index);
      out_index.copy_(order);
      token_ids.copy_(index.index_select(0, order));
      if (probs.defined()) {
        const Tensor flat = probs().reshape(-1);
        const Tensor chosen = flat.index_select(0, index * routed.experts + routed.Experts());
        permuted_probs.copy_(chosen);
        rows = rows * chosen.unsqueeze(-1);
      }
      out.copy_(SumsOfRows(rows, index, routed.tokens));
      return;
    }
    out_index.copy_(where);
    token_ids.copy_(at::arange(routed.rows).floor_divide(std::max<int64_t>(routed.k(), 1)));
    if (probs.defined()) {
      const Tensor chosen = ChosenValues(probs(), ByExpert(map), routed.rows);
      permuted_probs.copy_(chosen);
      rows = rows * chosen.unsqueeze(-1);
    }
    const Tensor slots = RowsOrZeros(rows, where.to(at::kLong));
    out.copy_(slots.view({routed.tokens, routed.k(), width}).sum(1));
  });
}

// (unpermutedTokensGrad, outIndex, permuteTokenId, routingMap?, permutedTokens?, probs?,
// dropAndPad, restoreShape?, permutedTokensGrad, probsGrad?)
std::unique_ptr<Kernel> BindUnpermuteByMapGrad(const Call& call) {
  const Operand gradient = call.In(0), permuted = call.OptionalIn(4), probs = call.OptionalIn(5);
  call.ExpectRank(0, gradient.view(), 2);
  ExpectRoutedFloats(call, {0, 4, 5});
  const int64_t width = gradient.sizes()[1];
  const Tensor out = call.Out(8);
  call.ExpectRank(8, out, 2);
  RoutedRows routed = {gradient.sizes()[0], 0, out.size(0), call.Bool(6)};
  call.ExpectSizes(8, out, {routed.rows, width});
  const Tensor out_index = ReadRowIndices(call, 1, routed.rows);
  const Tensor token_ids = ReadRowIndices(call, 2, routed.rows);
  const std::vector<int64_t> restored = call.Ints(7);
  if (!restored.empty() && restored != gradient.sizes().vec()) {
    call.RejectArg(7, "is not the shape of unpermutedTokensGrad");
  }
  Tensor map, of_probs;
  if (probs.defined()) {
    for (int i : {3, 4}) {
      if (call.IsAbsent(i)) call.RejectArg(i, "is absent, but probs are given");
    }
    map = ReadMap(call, 3);
    routed.experts = map.size(1);
    for (int i : {3, 5}) call.ExpectSizes(i, call.View(i), {routed.tokens, routed.experts});
    call.ExpectSizes(4, permuted.view(), {routed.rows, width});
    ExpectEven(call, 8, routed);
    of_probs = call.Out(9);
    call.ExpectSizes(9, of_probs, probs.sizes());
  }
  return MakeKernel([=] {
    const Tensor all_rows = out_index.to(at::kLong);
    const Tensor kept = all_rows.ge(0).logical_and(all_rows.lt(routed.rows)).nonzero().flatten();
    const Tensor index = all_rows.index_select(0, kept);
    const Tensor token = Within(token_ids, routed.tokens, "permuteTokenId").index_select(0, kept);
    const Tensor given = gradient();
    Tensor rows = at::zeros({routed.rows, width}, given.options());
    rows.index_copy_(0, index, given.index_select(0, token));
    if (probs.defined()) {
      const Tensor products = (rows * permuted()).sum(-1), values = probs();
      Tensor chosen;
      if (routed.padded) {
        const Tensor places = token * routed.experts + routed.Experts().index_select(0, index);
        chosen = at::zeros({routed.rows}, values.options());
        chosen.index_copy_(0, index, values.reshape(-1).index_select(0, places));
        const Tensor spread = at::zeros({values.numel()}, values.options());
        spread.index_copy_(0, places, products.index_select(0, index).to(values.scalar_type()));
        of_probs.copy_(spread.view(values.sizes()));
      } else {
        const Tensor by_expert = ByExpert(map);
        chosen = ChosenValues(values, by_expert, routed.rows);
        of_probs.copy_(SpreadByMap(products, by_expert));
      }
      rows = rows * chosen.unsqueeze(-1);
    }
    out.copy_(rows);
  });
}

}  // namespace

KernelRows RoutingMapRows() {
  return {
      {"aclnnMoeTokenPermuteWithRoutingMap", BindPermuteByMap},
      {"aclnnMoeTokenPermuteWithRoutingMapGrad", BindPermuteByMapGrad, kWideRows},
      {"aclnnMoeTokenUnpermuteWithRoutingMap", BindUnpermuteByMap, kWideRows, {9}},
      {"aclnnMoeTokenUnpermuteWithRoutingMapGrad", BindUnpermuteByMapGrad, kWideRows},
  };
}

}  // namespace acltape::opapi
