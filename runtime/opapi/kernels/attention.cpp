#include "runtime/opapi/kernels/attention.h"

#include <ATen/ExpandUtils.h>

#include <limits>

namespace acltape::opapi {

using at::Tensor;

namespace {

struct LayoutRow {
  const char* name;
  int64_t rank;
  bool merged;
  std::vector<int64_t> order;
};

const LayoutRow kLayouts[] = {
    {"BNSD", 4, false, {0, 1, 2, 3}}, {"BSND", 4, false, {0, 2, 1, 3}},
    {"BSH", 3, true, {0, 2, 1, 3}},   {"SBH", 3, true, {1, 2, 0, 3}},
    {"TND", 3, false, {1, 0, 2}},     {"NBSD", 4, false, {1, 0, 2, 3}},
    {"NTD", 3, false, {0, 1, 2}},
};

}  // namespace

HeadLayout HeadLayout::Named(const Call& call, int i, const std::string& name) {
  for (const LayoutRow& row : kLayouts) {
    if (name != row.name) continue;
    HeadLayout layout;
    layout.rank_ = row.rank;
    layout.merged_ = row.merged;
    layout.order_ = row.order;
    return layout;
  }
  call.RejectArg(i, "is the layout \"" + name + "\", which the soft device lacks");
}

Tensor HeadLayout::Split(const Call& call, int i, const Tensor& tensor, int64_t heads) const {
  call.ExpectRank(i, tensor, rank_);
  Tensor split = tensor;
  if (merged_) {
    if (heads < 1 || tensor.size(-1) % heads != 0) {
      call.RejectArg(i, "has shape " + SizesText(tensor.sizes()) + ", which does not split into " +
                            std::to_string(heads) + " heads");
    }
    split = tensor.unflatten(-1, {heads, tensor.size(-1) / heads});
  }
  split = split.permute(order_);
  if (packed()) split = split.unsqueeze(0);
  if (split.size(1) != heads) {
    call.RejectArg(i, "has shape " + SizesText(tensor.sizes()) + ", expected " +
                          std::to_string(heads) + " heads");
  }
  return split;
}

std::vector<int64_t> HeadLayout::Sizes(at::IntArrayRef split) const {
  if (packed()) {
    std::vector<int64_t> sizes(3);
    for (int64_t i = 0; i < 3; ++i) sizes[order_[i]] = split[i + 1];
    return sizes;
  }
  std::vector<int64_t> sizes(4);
  for (int64_t i = 0; i < 4; ++i) sizes[order_[i]] = split[i];
  if (!merged_) return sizes;
  return {sizes[0], sizes[1], sizes[2] * sizes[3]};
}

Tensor ScoreMask::LeftOut(int64_t queries, int64_t keys) const {
  Tensor given = mask.defined() ? mask.to(at::kBool) : Tensor();
  if (!band) return given;
  const int64_t shift = corner == Corner::kTopLeft ? 0 : keys - queries;
  const Tensor distance = at::arange(keys, at::kLong).unsqueeze(0) -
                          (at::arange(queries, at::kLong) + shift).unsqueeze(1);
  const Tensor outside = distance.gt(after).logical_or(distance.lt(-before));
  return given.defined() ? given.logical_or(outside) : outside;
}

ScoreMask ReadScoreMask(const Call& call, int mask_index, int pre_index, int next_index,
                        int mode_index) {
  constexpr int64_t kCompressed = 2048;  // modes 2 to 4 take a triangle of this size
  constexpr int64_t kUnbounded = std::numeric_limits<int32_t>::max();
  const int64_t mode = mode_index < 0 ? 1 : call.Int(mode_index);
  if (mode < 0 || mode > 4) {
    call.RejectArg(mode_index,
                   "is " + std::to_string(mode) + "; the soft device has sparse modes 0 to 4");
  }
  ScoreMask result;
  if (!call.IsAbsent(mask_index)) {
    result.mask = call.View(mask_index);
    ExpectByteMask(call, mask_index, result.mask);
  }
  if (mode == 1) return result;
  if (mode == 0) {
    result.band = result.mask.defined();
    result.before = call.Int(pre_index);
    result.after = call.Int(next_index);
    return result;
  }
  if (!result.mask.defined() || result.mask.dim() < 2 || result.mask.size(-1) != kCompressed ||
      result.mask.size(-2) != kCompressed) {
    call.RejectArg(mask_index, "must be the 2048 x 2048 triangle of sparse modes 2 to 4");
  }
  result.mask = Tensor();  // the mode says all that the triangle could
  result.band = true;
  result.corner = mode == 2 ? ScoreMask::Corner::kTopLeft : ScoreMask::Corner::kBottomRight;
  result.before = mode == 4 ? call.Int(pre_index) : kUnbounded;
  result.after = mode == 4 ? call.Int(next_index) : 0;
  return result;
}

std::vector<SequencePlace> PlaceSequences(const std::vector<int64_t>& lengths,
                                          const std::vector<int64_t>& key_lengths, bool packed) {
  std::vector<SequencePlace> places;
  SequencePlace next{};
  for (size_t s = 0; s < lengths.size(); ++s) {
    next.queries = lengths[s];
    next.keys = key_lengths[s];
    places.push_back(next);
    if (packed) {
      next.first_query += lengths[s];
      next.first_key += key_lengths[s];
    } else {
      ++next.batch;
    }
  }
  return places;
}

void ExpectByteMask(const Call& call, int i, const Tensor& mask) {
  const at::ScalarType dtype = mask.scalar_type();
  if (dtype != at::kBool && dtype != at::kByte && dtype != at::kChar) {
    call.RejectArg(i, "is neither bool nor a byte");
  }
}

void ExpectQueryDtype(const Call& call, int i, const Tensor& tensor, const Tensor& query) {
  if (tensor.scalar_type() != query.scalar_type()) {
    call.RejectArg(i, std::string("has dtype ") + at::toString(tensor.scalar_type()) +
                          " but query has " + at::toString(query.scalar_type()));
  }
}

void ExpectScores(const Call& call, int i, const Tensor& tensor, const Extent& extent) {
  if (!tensor.defined()) return;
  if (call.Broadcast({tensor.sizes(), extent.scores()}) != extent.scores()) {
    call.RejectArg(i, "has shape " + SizesText(tensor.sizes()) +
                          ", which does not broadcast to the scores " + SizesText(extent.scores()));
  }
}

void ExpectKeys(const Call& call, const Tensor& query, const Tensor& key, const Tensor& value,
                int i) {
  if (key.size(0) != query.size(0) || key.size(3) != query.size(3)) {
    call.RejectArg(i, "has another batch or width than query");
  }
  if (key.size(1) == 0 || query.size(1) % key.size(1) != 0) {
    call.RejectArg(i, "has a number of heads that does not divide query's");
  }
  if (value.size(0) != key.size(0) || value.size(1) != key.size(1) ||
      value.size(2) != key.size(2)) {
    call.RejectArg(i + 1, "has another batch, number of heads or length than key");
  }
}

void ExpectAbsent(const Call& call, const std::vector<int>& positions) {
  for (int i : positions) {
    if (!call.IsAbsent(i)) call.RejectArg(i, "is given, which the soft device lacks");
  }
}

namespace {

// Queries are computed in float32, float64 ones in float64.
at::ScalarType ComputeDtype(const Tensor& query) {
  return query.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

// Keys or values of as many heads as the queries have.
Tensor PerQueryHead(const Tensor& tensor, const Tensor& query) {
  const Tensor wide = tensor.to(ComputeDtype(query));
  const int64_t sharing = tensor.size(1) == 0 ? 1 : query.size(1) / tensor.size(1);
  return sharing == 1 ? wide : wide.repeat_interleave(sharing, 1);
}

// The sum over the query heads that share a head of `model`.
Tensor PerKeyHead(const Tensor& gradient, const Tensor& model) {
  if (gradient.size(1) == model.size(1)) return gradient;
  const int64_t sharing = gradient.size(1) / model.size(1);
  return gradient.unflatten(1, {model.size(1), sharing}).sum(2);
}

constexpr double kLowest = -std::numeric_limits<double>::infinity();

Tensor SinkScores(const AttentionTerms& terms, at::ScalarType dtype) {
  return terms.sink.to(dtype).reshape({1, -1, 1, 1});
}

// The maximum is taken off the scores before they are exponentiated. A query without scores has
// none, so nothing is taken off there.
Tensor Base(const Tensor& maximum) { return maximum.masked_fill(maximum.eq(kLowest), 0); }

}  // namespace

Tensor AttentionScores(const Tensor& query, const Tensor& key, const AttentionTerms& terms) {
  const at::ScalarType dtype = ComputeDtype(query);
  Tensor scores = at::matmul(query.to(dtype), PerQueryHead(key, query).transpose(-1, -2));
  if (terms.bias.defined() && terms.bias_first) scores = scores + terms.bias.to(dtype);
  scores = scores * terms.scale;
  if (terms.bias.defined() && !terms.bias_first) scores = scores + terms.bias.to(dtype);
  if (terms.left_out.defined()) scores = scores.masked_fill(terms.left_out, kLowest);
  return scores;
}

AttentionResult Attend(const Tensor& query, const Tensor& key, const Tensor& value,
                       const AttentionTerms& terms) {
  const Tensor scores = AttentionScores(query, key, terms);
  std::vector<int64_t> rows = scores.sizes().vec();
  rows.back() = 1;
  AttentionResult result;
  result.maximum = scores.size(-1) == 0 ? at::full(rows, kLowest, scores.options())
                                        : scores.amax(-1, /*keepdim=*/true);
  Tensor sink;
  if (terms.sink.defined()) {
    sink = SinkScores(terms, scores.scalar_type());
    result.maximum = at::maximum(result.maximum, sink);
  }
  const Tensor base = Base(result.maximum);
  Tensor weights = (scores - base).exp();
  result.sum = weights.sum(-1, /*keepdim=*/true);
  if (sink.defined()) result.sum = result.sum + (sink - base).exp();
  weights = weights / result.sum.masked_fill(result.sum.eq(0), 1);
  if (terms.weights.defined()) weights = weights * terms.weights;
  result.out = at::matmul(weights, PerQueryHead(value, query));
  return result;
}

AttentionGradients AttendBackward(const Tensor& gradient, const Tensor& query, const Tensor& key,
                                  const Tensor& value, const Tensor& maximum, const Tensor& sum,
                                  const AttentionTerms& terms) {
  const at::ScalarType dtype = ComputeDtype(query);
  const Tensor base = Base(maximum.to(dtype)), whole = sum.to(dtype);
  const Tensor total = whole.masked_fill(whole.eq(0), 1);
  const Tensor weights = (AttentionScores(query, key, terms) - base).exp() / total;
  const Tensor kept = terms.weights.defined() ? weights * terms.weights : weights;
  const Tensor dy = gradient.to(dtype);
  AttentionGradients result;
  result.value = PerKeyHead(at::matmul(kept.transpose(-1, -2), dy), value);
  Tensor of_weights = at::matmul(dy, PerQueryHead(value, query).transpose(-1, -2));
  if (terms.weights.defined()) of_weights = of_weights * terms.weights;
  const Tensor mean = (of_weights * weights).sum(-1, /*keepdim=*/true);
  const Tensor of_scores = weights * (of_weights - mean);
  const Tensor scaled = of_scores * terms.scale;
  result.query = at::matmul(scaled, PerQueryHead(key, query));
  result.key = PerKeyHead(at::matmul(scaled.transpose(-1, -2), query.to(dtype)), key);
  if (terms.bias.defined()) {
    result.bias = at::sum_to(terms.bias_first ? scaled : of_scores, terms.bias.sizes());
  }
  if (terms.sink.defined()) {
    const Tensor weight = (SinkScores(terms, dtype) - base).exp() / total;
    result.sink = (weight * mean).sum(at::IntArrayRef({0, 2, 3})).neg();
  }
  return result;
}

}  // namespace acltape::opapi
