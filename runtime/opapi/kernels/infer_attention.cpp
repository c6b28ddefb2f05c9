// Fused attention of inference: prompts, single steps, and both. Computed in float32 and rounded
// once at the end.
#include "runtime/opapi/engine/kernel_table.h"
#include "runtime/opapi/kernels/attention.h"
#include "runtime/opapi/kernels/expect_dtypes.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

// The positions of the arguments in a version of an operator; -1: it has no such argument.
struct InferArguments {
  std::vector<int> absent;  // quantisation, paging, padding, shared prefixes, ropes
  int lengths, key_lengths, sink, heads, scale, pre, next, layout, kv_heads, mode, lse_flag;
  int out, lse;
  int table = -1;  // the blocks in which keys and values lie; their size is two after the mode
  int rope = -1;   // columns that queries have, too; those of keys follow
};

constexpr int kRope = 24;

// The positions from `first` to `last`.
std::vector<int> From(int first, int last) {
  std::vector<int> positions;
  for (int i = first; i <= last; ++i) positions.push_back(i);
  return positions;
}

// Those from 7 to `last` without the table of blocks and the ropes.
std::vector<int> AllButTable(int last) {
  std::vector<int> positions = From(7, 13);
  for (int i : From(15, last)) {
    if (i != kRope && i != kRope + 1) positions.push_back(i);
  }
  return positions;
}

const InferArguments kInfer = {
    AllButTable(16), 5, 6, -1, 17, 18, 19, 20, 21, 22, 23, 27, 28, 29, 14};
const InferArguments kInferV2 = {
    AllButTable(23), 5, 6, -1, 24, 25, 26, 27, 28, 29, 30, 34, 37, 38, 14};
const InferArguments kInferV3 = {
    AllButTable(26), 5, 6, -1, 27, 28, 29, 30, 31, 32, 33, 37, 40, 41, 14, kRope};
const InferArguments kInferV4 = {
    AllButTable(27), 5, 6, 28, 29, 30, 31, 32, 33, 34, 35, 39, 43, 44, 14, kRope};
const InferArguments kPromptV3 = {From(7, 11), 5, 6, -1, 12, 13, 14, 15, 16, 17, 18, -1, 20, -1};
// One query a sequence; the lengths are those of the keys.
const InferArguments kIncre = {{}, -1, 5, -1, 6, 7, -1, -1, 8, 9, -1, -1, 10, -1};
const InferArguments kIncreV2 = {From(6, 10), -1, 5, -1, 11, 12, -1, -1, 13, 14, -1, -1, 15, -1};
const InferArguments kIncreV3 = {From(6, 13), -1, 5, -1, 14, 15, -1, -1, 16, 17, -1, -1, 20, -1};
const InferArguments kIncreV4 = {From(6, 14), -1, 5, -1, 15, 16, -1, -1, 17, 18, -1, -1, 21, -1};

// Keys or values in blocks of a cache.
struct Blocks {
  Tensor cache;  // [blocks, rows, heads * width], [blocks, heads, rows, width], or that in fractals
  int64_t heads = 0;

  int64_t rows() const { return cache.size(cache.dim() == 3 ? 1 : cache.dim() - 2); }
  int64_t width() const {
    return cache.dim() == 3   ? cache.size(2) / heads
           : cache.dim() == 4 ? cache.size(3)
                              : cache.size(2) * cache.size(4);
  }

  // The first `count` rows in these blocks, as [1, heads, count, width].
  Tensor Gather(const Tensor& order, int64_t count) const {
    Tensor picked = cache.index_select(0, order);
    if (cache.dim() == 3) picked = picked.unflatten(-1, {heads, width()}).transpose(1, 2);
    if (cache.dim() == 5) picked = picked.transpose(2, 3).flatten(3);
    return picked.transpose(0, 1).flatten(1, 2).narrow(1, 0, count).unsqueeze(0);
  }
};

// One sequence: where its queries, keys and results lie. All are views of [1, heads, ...].
struct Sequence {
  Tensor query, key, value, bias, out, lse;
  Tensor query_rope, key_rope;  // further columns of queries and keys; may be undefined
  Tensor blocks;                // its row of the table, where keys and values lie in blocks
  int64_t keys = 0;
  ScoreMask mask;
};

// Lengths that are running sums as lengths; entries of 0 after them are sequences without rows.
std::vector<int64_t> LengthsOfSums(std::vector<int64_t> sums) {
  int64_t before = 0;
  for (int64_t& sum : sums) {
    const int64_t length = sum == 0 ? 0 : sum - before;
    if (sum != 0) before = sum;
    sum = length;
  }
  return sums;
}

// Lengths of a packed layout are running sums; of others one per batch, or one for all.
std::vector<int64_t> Lengths(const Call& call, int i, int64_t batch, int64_t whole, bool packed) {
  std::vector<int64_t> lengths = i < 0 ? std::vector<int64_t>() : call.Ints(i);
  if (packed) {
    if (lengths.empty()) call.RejectArg(i, "must hold running lengths for the layout \"TND\"");
    lengths = LengthsOfSums(std::move(lengths));
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

// The cache of keys or values (argument `i`) for queries of this width, in blocks of `rows` rows.
Blocks ReadBlocks(const Call& call, int i, const Tensor& query, int64_t heads, int64_t rows) {
  const bool list = call.Arg(i).kind == acl::ArgKind::kTensorList;
  const std::vector<Tensor> views = list ? call.Views(i) : std::vector<Tensor>{call.View(i)};
  if (views.size() != 1) call.RejectArg(i, "must be one cache where a table of blocks is given");
  Blocks blocks{views[0], heads};
  ExpectQueryDtype(call, i, blocks.cache, query);
  const int64_t dim = blocks.cache.dim();
  const bool divides =
      dim == 3 ? blocks.cache.size(2) % heads == 0 : dim > 1 && blocks.cache.size(1) == heads;
  if (dim < 3 || dim > 5 || !divides || blocks.rows() != rows) {
    call.RejectArg(i, "has shape " + SizesText(blocks.cache.sizes()) + ", which is no cache of " +
                          std::to_string(heads) + " heads in blocks of " + std::to_string(rows));
  }
  return blocks;
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
  ExpectFloats(call, 0, query);
  const bool packed = layout.packed();
  const int64_t batches = packed ? 1 : query.size(0);
  const bool paged = at.table >= 0 && !call.IsAbsent(at.table);
  const bool ropes = at.rope >= 0 && !call.IsAbsent(at.rope);
  Tensor query_rope;
  if (ropes) {
    query_rope = layout.Split(call, at.rope, call.View(at.rope), heads);
    ExpectQueryDtype(call, at.rope, query_rope, query);
    if (query_rope.sizes().slice(0, 3) != query.sizes().slice(0, 3)) {
      call.RejectArg(at.rope, "has other rows than query");
    }
    if (call.IsAbsent(at.rope + 1))
      call.RejectArg(at.rope + 1, "is absent, but queryRope is given");
  }
  std::vector<Tensor> keys, values, key_ropes;
  Blocks key_blocks, value_blocks, rope_blocks;
  Tensor table;
  if (paged) {
    const int64_t rows = call.Int(at.mode + 2);
    key_blocks = ReadBlocks(call, 1, query, kv_heads, rows);
    value_blocks = ReadBlocks(call, 2, query, kv_heads, rows);
    if (key_blocks.width() != query.size(3)) call.RejectArg(1, "has another width than query");
    if (ropes) {
      rope_blocks = ReadBlocks(call, at.rope + 1, query, kv_heads, rows);
      if (rope_blocks.width() != query_rope.size(3)) {
        call.RejectArg(at.rope + 1, "has another width than queryRope");
      }
    }
    table = call.View(at.table);
    call.ExpectRank(at.table, table, 2);
    if (table.scalar_type() != at::kInt) call.RejectArg(at.table, "is not int32");
  } else {
    keys = KeysPerBatch(call, 1, layout, batches, kv_heads, query);
    values = KeysPerBatch(call, 2, layout, batches, kv_heads, query);
    for (int64_t b = 0; b < batches; ++b) {
      ExpectKeys(call, packed ? query : query.narrow(0, b, 1), keys[b], values[b]);
    }
    if (ropes) key_ropes = KeysPerBatch(call, at.rope + 1, layout, batches, kv_heads, query);
    for (size_t b = 0; b < key_ropes.size(); ++b) {
      if (key_ropes[b].size(2) != keys[b].size(2) || key_ropes[b].size(3) != query_rope.size(3)) {
        call.RejectArg(at.rope + 1, "does not fit key and queryRope");
      }
    }
  }
  const int64_t width = paged ? value_blocks.width() : values[0].size(3);
  const Tensor given = call.Out(at.out);
  call.ExpectSizes(at.out, given, out_layout.Sizes({query.size(0), heads, query.size(2), width}));
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
  const auto count = static_cast<int64_t>(packed ? lengths.size() : batches);
  // With a table each sequence has its own length of keys in every layout.
  const int64_t whole = paged ? table.size(1) * key_blocks.rows() : keys[0].size(2);
  const std::vector<int64_t> key_lengths =
      Lengths(call, at.key_lengths, count, whole, packed && !paged);
  if (lengths.size() != key_lengths.size()) {
    call.RejectArg(at.key_lengths, "has another number of sequences than actualSeqLengths");
  }
  if (paged && table.size(0) < count) call.RejectArg(at.table, "has fewer rows than sequences");
  std::vector<Sequence> sequences;
  for (const SequencePlace& place : PlaceSequences(lengths, key_lengths, packed)) {
    // Keys and values are split by batch already.
    const auto cut = [&](const std::vector<Tensor>& split) {
      return split[place.batch].narrow(2, place.first_key, place.keys);
    };
    Sequence one;
    one.query = place.Queries(query);
    if (ropes) one.query_rope = place.Queries(query_rope);
    one.out = place.Queries(out);
    one.keys = place.keys;
    if (paged) {
      const int64_t used = (place.keys + key_blocks.rows() - 1) / key_blocks.rows();
      one.blocks = table[static_cast<int64_t>(sequences.size())].narrow(0, 0, used);
    } else {
      one.key = cut(keys);
      if (ropes) one.key_rope = cut(key_ropes);
      one.value = cut(values);
    }
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
      terms.left_out = one.mask.LeftOut(one.query.size(2), one.keys);
      Tensor key = one.key, value = one.value, key_rope = one.key_rope;
      if (paged) {  // the table is device memory: it is read when the task runs
        const Tensor order = one.blocks.to(at::kLong);
        key = key_blocks.Gather(order, one.keys);
        value = value_blocks.Gather(order, one.keys);
        if (ropes) key_rope = rope_blocks.Gather(order, one.keys);
      }
      const Tensor query_row = ropes ? at::cat({one.query, one.query_rope}, -1) : one.query;
      if (ropes) key = at::cat({key, key_rope}, -1);
      const AttentionResult result = Attend(query_row, key, value, terms);
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
