// Fused attention of training and of inference. Computed in float32 and rounded once at the end.
#include "runtime/opapi/engine/kernel_table.h"
#include "runtime/opapi/engine/target.h"
#include "runtime/opapi/kernels/attention.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

// Sizes of queries and keys together, once split into heads.
struct Extent {
  int64_t batch, heads, queries, keys;

  std::vector<int64_t> scores() const { return {batch, heads, queries, keys}; }
};

void ExpectDtype(const Call& call, int i, const Tensor& tensor, const Tensor& query) {
  if (tensor.scalar_type() != query.scalar_type()) {
    call.RejectArg(i, std::string("has dtype ") + at::toString(tensor.scalar_type()) +
                          " but query has " + at::toString(query.scalar_type()));
  }
}

void ExpectFloating(const Call& call, int i, const Tensor& tensor) {
  if (!at::isFloatingType(tensor.scalar_type())) {
    call.RejectArg(i, std::string("has dtype ") + at::toString(tensor.scalar_type()) +
                          ", expected a floating dtype");
  }
}

void ExpectScores(const Call& call, int i, const Tensor& tensor, const Extent& extent) {
  if (!tensor.defined()) return;
  if (call.Broadcast({tensor.sizes(), extent.scores()}) != extent.scores()) {
    call.RejectArg(i, "has shape " + SizesText(tensor.sizes()) +
                          ", which does not broadcast to the scores " + SizesText(extent.scores()));
  }
}

void ExpectKeys(const Call& call, const Tensor& query, const Tensor& key, const Tensor& value) {
  if (key.size(0) != query.size(0) || key.size(3) != query.size(3)) {
    call.RejectArg(1, "has another batch or width than query");
  }
  if (key.size(1) == 0 || query.size(1) % key.size(1) != 0) {
    call.RejectArg(1, "has a number of heads that does not divide query's");
  }
  if (value.size(0) != key.size(0) || value.size(1) != key.size(1) ||
      value.size(2) != key.size(2)) {
    call.RejectArg(2, "has another batch, number of heads or length than key");
  }
}

// An argument that changes the result in a way that the soft device does not compute.
void ExpectAbsent(const Call& call, std::initializer_list<int> positions) {
  for (int i : positions) {
    if (!call.IsNull(i)) call.RejectArg(i, "is given, which the soft device lacks");
  }
}

// --- Training.

// Where the arguments stand in the versions of the operator; -1: absent.
struct FlashArguments {
  int sink, prefix, scale, keep, pre, next, heads, layout, mode, pse_type, maximum;
};
constexpr FlashArguments kFlash = {-1, 7, 8, 9, 10, 11, 12, 13, 15, -1, 16};
constexpr FlashArguments kFlashV2 = {-1, 7, 10, 11, 12, 13, 14, 15, 17, 18, 19};
constexpr FlashArguments kFlashV3 = {7, 8, 11, 12, 13, 14, 15, 16, 18, 19, 20};

// Factors of the probabilities from packed bits, the lowest first: 1 keeps.
Tensor DropoutFactors(const Tensor& bits, const Extent& extent, double keep) {
  const int64_t count = extent.batch * extent.heads * extent.queries * extent.keys;
  const Tensor shifts = at::arange(8, at::TensorOptions(at::kByte));
  const Tensor kept = bits.reshape({-1, 1}).bitwise_right_shift(shifts).bitwise_and(1).flatten();
  return kept.narrow(0, 0, count).to(at::kFloat).div(keep).view(extent.scores());
}

Tensor ReadDropoutMask(const Call& call, int i, const Extent& extent) {
  if (call.IsNull(i)) return {};
  Tensor bits = call.View(i);
  const int64_t needed = (extent.batch * extent.heads * extent.queries * extent.keys + 7) / 8;
  if (bits.scalar_type() != at::kByte || bits.numel() < needed) {
    call.RejectArg(i, "must hold one bit per score in uint8: " + std::to_string(needed) + " bytes");
  }
  return bits;
}

// (query, key, value, realShift?, dropMask?, paddingMask?, attenMask?, ..., softmaxMax, softmaxSum,
// softmaxOut, attentionOut). softmaxMax and softmaxSum hold each value 8 times; softmaxOut stays
// unwritten.
std::unique_ptr<Kernel> BindFlash(const Call& call, const FlashArguments& at) {
  ExpectAbsent(call, {5, at.prefix});
  const std::string name = call.Text(at.layout);
  if (name == "TND") call.RejectArg(at.layout, "is \"TND\", which needs the variable length form");
  const HeadLayout layout = HeadLayout::Named(call, at.layout, name);
  const int64_t heads = call.Int(at.heads);
  const Tensor query = layout.Split(call, 0, call.View(0), heads);
  ExpectFloating(call, 0, query);
  const int64_t width = query.size(3);
  const auto split_keys = [&](int i) {
    const Tensor view = call.View(i);
    ExpectDtype(call, i, view, query);
    const bool merged = view.dim() == 3;
    const int64_t key_heads = merged && width > 0 ? call.View(1).size(-1) / width
                              : view.dim() == 4   ? view.size(name == "BNSD" ? 1 : 2)
                                                  : heads;
    return layout.Split(call, i, view, key_heads);
  };
  const Tensor key = split_keys(1), value = split_keys(2);
  ExpectKeys(call, query, key, value);
  const Extent extent{query.size(0), heads, query.size(2), key.size(2)};

  const int64_t pse_type = at.pse_type < 0 ? 1 : call.Int(at.pse_type);
  if (pse_type != 0 && pse_type != 1) {
    call.RejectArg(at.pse_type, "must be 0 (scaled, then added) or 1 (added, then scaled)");
  }
  const Tensor bias = call.IsNull(3) ? Tensor() : call.View(3);
  ExpectScores(call, 3, bias, extent);
  const ScoreMask mask = ReadScoreMask(call, 6, at.pre, at.next, at.mode);
  ExpectScores(call, 6, mask.mask, extent);
  const double keep = call.Real(at.keep);
  if (!(keep > 0 && keep <= 1)) call.RejectArg(at.keep, "must be above 0 and at most 1");
  const Tensor dropout = ReadDropoutMask(call, 4, extent);
  const Tensor sink = at.sink < 0 || call.IsNull(at.sink) ? Tensor() : call.View(at.sink);
  if (sink.defined()) call.ExpectSizes(at.sink, sink, {heads});

  const Tensor maximum = call.Out(at.maximum), sum = call.Out(at.maximum + 1);
  const std::vector<int64_t> statistics{extent.batch, heads, extent.queries, 8};
  call.ExpectSizes(at.maximum, maximum, statistics);
  call.ExpectSizes(at.maximum + 1, sum, statistics);
  const Tensor given = call.Out(at.maximum + 3);
  call.ExpectSizes(at.maximum + 3, given,
                   layout.Sizes({extent.batch, heads, extent.queries, value.size(3)}));
  const Tensor out = layout.Split(call, at.maximum + 3, given, heads);
  const double scale = call.Real(at.scale);
  return MakeKernel([=] {
    AttentionTerms terms;
    terms.scale = scale;
    terms.bias = bias;
    terms.bias_first = pse_type == 1;
    terms.left_out = mask.LeftOut(extent.queries, extent.keys);
    terms.sink = sink;
    if (dropout.defined()) terms.weights = DropoutFactors(dropout, extent, keep);
    const AttentionResult result = Attend(query, key, value, terms);
    out.copy_(result.out);
    maximum.copy_(result.maximum.expand(statistics));
    sum.copy_(result.sum.expand(statistics));
  });
}

// --- Inference.

struct InferArguments {
  int heads, scale, pre, next, layout, kv_heads, mode, lse_flag, out, lse;
  std::vector<int> absent;  // quantisation, paging, padding, shared prefixes, ropes
};
const InferArguments kInfer = {
    17, 18, 19, 20, 21, 22, 23, 27, 28, 29, {7, 8, 9, 10, 11, 12, 13, 14, 15, 16}};
const InferArguments kInferV2 = {24,
                                 25,
                                 26,
                                 27,
                                 28,
                                 29,
                                 30,
                                 34,
                                 37,
                                 38,
                                 {7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23}};
const InferArguments kInferV3 = {
    27, 28, 29, 30, 31, 32, 33, 37, 40, 41, {7,  8,  9,  10, 11, 12, 13, 14, 15, 16,
                                             17, 18, 19, 20, 21, 22, 23, 24, 25, 26}};

// One sequence: where its queries, keys and results lie. All are views of [1, heads, ...].
struct Sequence {
  Tensor query, key, value, bias, out, lse;
  ScoreMask mask;
};

// Lengths of a packed layout are running sums; of others one per batch, or one for all.
std::vector<int64_t> Lengths(const Call& call, int i, int64_t batch, int64_t whole, bool packed) {
  std::vector<int64_t> lengths = call.Ints(i);
  if (packed) {
    if (lengths.empty()) call.RejectArg(i, "must hold running lengths for the layout \"TND\"");
    for (size_t k = lengths.size(); k-- > 1;) lengths[k] -= lengths[k - 1];
  }
  if (lengths.empty()) return std::vector<int64_t>(batch, whole);
  if (!packed && lengths.size() == 1) lengths.resize(batch, lengths[0]);
  if (!packed && static_cast<int64_t>(lengths.size()) != batch) {
    call.RejectArg(i, "has " + std::to_string(lengths.size()) + " entries for " +
                          std::to_string(batch) + " sequences");
  }
  int64_t total = 0;
  for (int64_t length : lengths) {
    total = packed ? total + length : length;
    if (length < 0 || total > whole) call.RejectArg(i, "exceeds the tensor");
  }
  return lengths;
}

// A mask or bias of one batch: its own entry where the tensor has a batch dim, cut to the scores.
Tensor OfBatch(const Call& call, int i, Tensor tensor, int64_t batch, int64_t queries,
               int64_t keys) {
  if (!tensor.defined()) return tensor;
  if (tensor.dim() == 3) tensor = tensor.unsqueeze(1);
  if (tensor.dim() == 4 && tensor.size(0) > 1) {
    if (batch >= tensor.size(0)) call.RejectArg(i, "has fewer batches than query");
    tensor = tensor.narrow(0, batch, 1);
  }
  const int64_t wanted[] = {queries, keys};
  for (int64_t dim : {-2, -1}) {
    const int64_t size = wanted[dim + 2];
    if (tensor.dim() < 2 || (tensor.size(dim) != 1 && tensor.size(dim) < size)) {
      call.RejectArg(i, "has shape " + SizesText(tensor.sizes()) + ", too small for " +
                            std::to_string(queries) + " queries and " + std::to_string(keys) +
                            " keys");
    }
    if (tensor.size(dim) != 1) tensor = tensor.narrow(dim, 0, size);
  }
  return tensor;
}

// The keys or values of every batch: one tensor of all, or one of each.
std::vector<Tensor> KeysPerBatch(const Call& call, int i, const HeadLayout& layout, int64_t batch,
                                 int64_t heads, const Tensor& query) {
  std::vector<Tensor> split;
  for (const Tensor& view : call.Views(i)) {
    ExpectDtype(call, i, view, query);
    split.push_back(layout.Split(call, i, view, heads));
  }
  if (split.size() == 1 && batch != 1) {
    const Tensor all = split[0];
    if (all.size(0) != batch) call.RejectArg(i, "has another batch than query");
    split.clear();
    for (int64_t b = 0; b < batch; ++b) split.push_back(all.narrow(0, b, 1));
  }
  if (static_cast<int64_t>(split.size()) != batch) {
    call.RejectArg(i, "needs one tensor, or one for each of " + std::to_string(batch) + " batches");
  }
  return split;
}

// (query, key list, value list, pseShift?, attenMask?, actualSeqLengths?, actualSeqLengthsKv?, ...)
std::unique_ptr<Kernel> BindInfer(const Call& call, const InferArguments& at) {
  for (int i : at.absent) ExpectAbsent(call, {i});
  std::string name = call.Text(at.layout), out_name = name;
  if (const size_t cut = name.find('_'); cut != std::string::npos) {
    out_name = name.substr(cut + 1);
    name = name.substr(0, cut);
  }
  const HeadLayout layout = HeadLayout::Named(call, at.layout, name);
  const HeadLayout out_layout = HeadLayout::Named(call, at.layout, out_name);
  const int64_t heads = call.Int(at.heads);
  const int64_t kv_heads = call.Int(at.kv_heads) == 0 ? heads : call.Int(at.kv_heads);
  if (heads < 1 || kv_heads < 1 || heads % kv_heads != 0) {
    call.RejectArg(at.kv_heads, "does not divide the number of heads");
  }
  const Tensor query = layout.Split(call, 0, call.View(0), heads);
  ExpectFloating(call, 0, query);
  const bool packed = layout.packed();
  const int64_t batches = packed ? 1 : query.size(0);
  const std::vector<Tensor> keys = KeysPerBatch(call, 1, layout, batches, kv_heads, query);
  const std::vector<Tensor> values = KeysPerBatch(call, 2, layout, batches, kv_heads, query);
  for (int64_t b = 0; b < batches; ++b) {
    ExpectKeys(call, packed ? query : query.narrow(0, b, 1), keys[b], values[b]);
  }
  const Tensor given = call.Out(at.out);
  call.ExpectSizes(at.out, given,
                   out_layout.Sizes({query.size(0), heads, query.size(2), values[0].size(3)}));
  const Tensor out = out_layout.Split(call, at.out, given, heads);
  Tensor lse;
  if (call.Bool(at.lse_flag)) {
    lse = call.Out(at.lse);
    const std::vector<int64_t> rows =
        packed ? std::vector<int64_t>{query.size(2), heads, 1}
               : std::vector<int64_t>{query.size(0), heads, query.size(2), 1};
    call.ExpectSizes(at.lse, lse, rows);
    if (packed) lse = lse.permute({1, 0, 2}).unsqueeze(0);
  }
  const ScoreMask mask = ReadScoreMask(call, 4, at.pre, at.next, at.mode);
  const Tensor bias = call.IsNull(3) ? Tensor() : call.View(3);

  const std::vector<int64_t> lengths = Lengths(call, 5, batches, query.size(2), packed);
  const std::vector<int64_t> key_lengths = Lengths(
      call, 6, static_cast<int64_t>(packed ? lengths.size() : batches), keys[0].size(2), packed);
  if (lengths.size() != key_lengths.size()) {
    call.RejectArg(6, "has another number of sequences than actualSeqLengths");
  }
  std::vector<Sequence> sequences;
  int64_t first_query = 0, first_key = 0;
  for (size_t s = 0; s < lengths.size(); ++s) {
    const auto b = packed ? int64_t{0} : static_cast<int64_t>(s);
    const auto cut = [&](const Tensor& tensor, int64_t first, int64_t length) {
      return tensor.narrow(2, packed ? first : 0, length);
    };
    Sequence one;
    one.query = cut(query.narrow(0, b, 1), first_query, lengths[s]);
    one.out = cut(out.narrow(0, b, 1), first_query, lengths[s]);
    one.key = cut(keys[b], first_key, key_lengths[s]);
    one.value = cut(values[b], first_key, key_lengths[s]);
    if (lse.defined()) one.lse = cut(lse.narrow(0, b, 1), first_query, lengths[s]);
    one.bias = OfBatch(call, 3, bias, b, lengths[s], key_lengths[s]);
    one.mask = mask;
    one.mask.mask = OfBatch(call, 4, mask.mask, b, lengths[s], key_lengths[s]);
    sequences.push_back(one);
    first_query += lengths[s];
    first_key += key_lengths[s];
  }
  const double scale = call.Real(at.scale);
  // Rows behind a sequence's actual length are zeros.
  const bool partial = !call.Ints(5).empty();
  return MakeKernel([=] {
    if (partial) Tensor(given).zero_();
    for (const Sequence& one : sequences) {
      AttentionTerms terms;
      terms.scale = scale;
      terms.bias = one.bias;
      terms.left_out = one.mask.LeftOut(one.query.size(2), one.key.size(2));
      const AttentionResult result = Attend(one.query, one.key, one.value, terms);
      one.out.copy_(result.out);
      if (one.lse.defined()) one.lse.copy_(result.sum.log() + result.maximum);
    }
  });
}

}  // namespace

KernelRows AttentionRows() {
  const auto flash = [](const FlashArguments& at) {
    return [&at](const Call& call) { return BindFlash(call, at); };
  };
  const auto infer = [](const InferArguments& at) {
    return [&at](const Call& call) { return BindInfer(call, at); };
  };
  return {
      {"aclnnFlashAttentionScore", flash(kFlash), Widen::kNever, {18}},
      {"aclnnFlashAttentionScoreV2", flash(kFlashV2), Widen::kNever, {21}},
      {"aclnnFlashAttentionScoreV3", flash(kFlashV3), Widen::kNever, {22}},
      {"aclnnFusedInferAttentionScore", infer(kInfer), Widen::kNever, {29}},
      {"aclnnFusedInferAttentionScoreV2", infer(kInferV2), Widen::kNever, {38}},
      {"aclnnFusedInferAttentionScoreV3", infer(kInferV3), Widen::kNever, {41}},
  };
}

}  // namespace acltape::opapi
