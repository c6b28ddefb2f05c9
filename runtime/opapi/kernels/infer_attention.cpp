// Fused attention of inference: prompts, single steps, and both. Computed in float32 and rounded
// once at the end.
#include "runtime/opapi/engine/kernel_table.h"
#include "runtime/opapi/kernels/attention.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

// The positions of the arguments in a version of an operator; -1: it has no such argument.
struct InferArguments {
  std::vector<int> absent;  // quantisation, paging, padding, shared prefixes, ropes
  int lengths, key_lengths, sink, heads, scale, pre, next, layout, kv_heads, mode, lse_flag;
  int out, lse;
};

// The positions from `first` to `last`.
std::vector<int> From(int first, int last) {
  std::vector<int> positions;
  for (int i = first; i <= last; ++i) positions.push_back(i);
  return positions;
}

const InferArguments kInfer = {From(7, 16), 5, 6, -1, 17, 18, 19, 20, 21, 22, 23, 27, 28, 29};
const InferArguments kInferV2 = {From(7, 23), 5, 6, -1, 24, 25, 26, 27, 28, 29, 30, 34, 37, 38};
const InferArguments kInferV3 = {From(7, 26), 5, 6, -1, 27, 28, 29, 30, 31, 32, 33, 37, 40, 41};
const InferArguments kInferV4 = {From(7, 27), 5, 6, 28, 29, 30, 31, 32, 33, 34, 35, 39, 43, 44};
const InferArguments kPromptV3 = {From(7, 11), 5, 6, -1, 12, 13, 14, 15, 16, 17, 18, -1, 20, -1};
// One query a sequence; the lengths are those of the keys.
const InferArguments kIncre = {{}, -1, 5, -1, 6, 7, -1, -1, 8, 9, -1, -1, 10, -1};
const InferArguments kIncreV2 = {From(6, 10), -1, 5, -1, 11, 12, -1, -1, 13, 14, -1, -1, 15, -1};
const InferArguments kIncreV3 = {From(6, 13), -1, 5, -1, 14, 15, -1, -1, 16, 17, -1, -1, 20, -1};
const InferArguments kIncreV4 = {From(6, 14), -1, 5, -1, 15, 16, -1, -1, 17, 18, -1, -1, 21, -1};

// One sequence: where its queries, keys and results lie. All are views of [1, heads, ...].
struct Sequence {
  Tensor query, key, value, bias, out, lse;
  ScoreMask mask;
};

// Lengths of a packed layout are running sums; of others one per batch, or one for all.
std::vector<int64_t> Lengths(const Call& call, int i, int64_t batch, int64_t whole, bool packed) {
  std::vector<int64_t> lengths = i < 0 ? std::vector<int64_t>() : call.Ints(i);
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
  const bool list = call.Arg(i).kind == acl::ArgKind::kTensorList;
  for (const Tensor& view : list ? call.Views(i) : std::vector<Tensor>{call.View(i)}) {
    ExpectQueryDtype(call, i, view, query);
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
  ExpectAbsent(call, at.absent);
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
  if (at.lse_flag >= 0 && call.Bool(at.lse_flag)) {
    lse = call.Out(at.lse);
    const std::vector<int64_t> rows =
        packed ? std::vector<int64_t>{query.size(2), heads, 1}
               : std::vector<int64_t>{query.size(0), heads, query.size(2), 1};
    call.ExpectSizes(at.lse, lse, rows);
    if (packed) lse = lse.permute({1, 0, 2}).unsqueeze(0);
  }
  const ScoreMask mask = ReadScoreMask(call, 4, at.pre, at.next, at.mode);
  const Tensor bias = call.IsAbsent(3) ? Tensor() : call.View(3);
  Tensor sink;
  if (at.sink >= 0 && !call.IsAbsent(at.sink)) {
    sink = call.View(at.sink);
    call.ExpectSizes(at.sink, sink, {heads});
  }

  // A query of one row has no rows to leave out: its lengths are not looked at.
  const bool one_row = !packed && query.size(2) == 1;
  const int lengths_index = one_row ? -1 : at.lengths;
  const std::vector<int64_t> lengths = Lengths(call, lengths_index, batches, query.size(2), packed);
  const std::vector<int64_t> key_lengths =
      Lengths(call, at.key_lengths, static_cast<int64_t>(packed ? lengths.size() : batches),
              keys[0].size(2), packed);
  if (lengths.size() != key_lengths.size()) {
    call.RejectArg(at.key_lengths, "has another number of sequences than actualSeqLengths");
  }
  std::vector<Sequence> sequences;
  for (const SequencePlace& place : PlaceSequences(lengths, key_lengths, packed)) {
    // Keys and values are split by batch already.
    const auto cut = [&](const std::vector<Tensor>& split) {
      return split[place.batch].narrow(2, place.first_key, place.keys);
    };
    Sequence one;
    one.query = place.Queries(query);
    one.out = place.Queries(out);
    one.key = cut(keys);
    one.value = cut(values);
    if (lse.defined()) one.lse = place.Queries(lse);
    one.bias = OfBatch(call, 3, bias, place.batch, place.queries, place.keys);
    one.mask = mask;
    one.mask.mask = OfBatch(call, 4, mask.mask, place.batch, place.queries, place.keys);
    sequences.push_back(one);
  }
  const double scale = call.Real(at.scale);
  // Rows after a sequence's actual length are zeros.
  const bool partial = lengths_index >= 0 && !call.Ints(lengths_index).empty();
  return MakeKernel([=] {
    if (partial) Tensor(given).zero_();
    for (const Sequence& one : sequences) {
      AttentionTerms terms;
      terms.scale = scale;
      terms.bias = one.bias;
      terms.sink = sink;
      terms.left_out = one.mask.LeftOut(one.query.size(2), one.key.size(2));
      const AttentionResult result = Attend(one.query, one.key, one.value, terms);
      one.out.copy_(result.out);
      if (one.lse.defined()) one.lse.copy_(result.sum.log() + result.maximum);
    }
  });
}

}  // namespace

KernelRows InferAttentionRows() {
  const auto infer = [](const InferArguments& at) {
    return [&at](const Call& call) { return BindInfer(call, at); };
  };
  return {
      {"aclnnFusedInferAttentionScore", infer(kInfer), Widen::kNever, {29}},
      {"aclnnFusedInferAttentionScoreV2", infer(kInferV2), Widen::kNever, {38}},
      {"aclnnFusedInferAttentionScoreV3", infer(kInferV3), Widen::kNever, {41}},
      {"aclnnFusedInferAttentionScoreV4", infer(kInferV4)},
      {"aclnnPromptFlashAttentionV3", infer(kPromptV3)},
      {"aclnnIncreFlashAttention", infer(kIncre), Widen::kNever, {3, 4, 5}},
      {"aclnnIncreFlashAttentionV2", infer(kIncreV2), Widen::kNever, {3, 4, 5, 6, 7, 8, 9, 10}},
      {"aclnnIncreFlashAttentionV3",
       infer(kIncreV3),
       Widen::kNever,
       {3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13}},
      {"aclnnIncreFlashAttentionV4", infer(kIncreV4), Widen::kNever, {4, 5}},
  };
}

}  // namespace acltape::opapi
