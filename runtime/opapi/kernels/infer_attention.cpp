// Fused attention of inference: prompts, single steps, and both. Computed in float32 and rounded
// once at the end.
#include "runtime/opapi/engine/kernel_table.h"
#include "runtime/opapi/kernels/attention.h"
#include "runtime/opapi/kernels/cache_scales.h"
#include "runtime/opapi/kernels/expect_dtypes.h"
#include "runtime/opapi/kernels/infer_arguments.h"
#include "runtime/opapi/kernels/infer_task.h"
#include "runtime/opapi/kernels/key_rows.h"
#include "runtime/opapi/kernels/sequence_lengths.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

// Binds one call, argument by argument.
class InferBinder {
 public:
  InferBinder(const Call& call, const InferArguments& at) : call_(call), at_(at) {}

  InferTask Bind() {
    ExpectAbsent(call_, at_.absent);
    task_.op = call_.op().name;
    task_.scale = call_.Real(at_.scale);
    ReadLayouts();
    ReadQuery();
    ReadKeys();
    ReadRopes();
    ReadPlaces();
    ReadScales();
    ReadPrefix();
    ReadPaddings();
    ReadScoreTerms();
    ReadOutputs();
    return std::move(task_);
  }

 private:
  bool Has(int i) const { return i >= 0 && !call_.IsAbsent(i); }
  bool packed() const { return layout_.packed(); }
  bool in_blocks() const { return task_.table.defined(); }
  int64_t batches() const { return packed() ? 1 : task_.query.size(0); }
  auto count() const { return static_cast<int64_t>(task_.places.size()); }

  void ReadLayouts() {
    std::string name = call_.Text(at_.layout), out_name = name;
    if (const size_t cut = name.find('_'); cut != std::string::npos) {
      out_name = name.substr(cut + 1);
      name = name.substr(0, cut);
    }
    layout_ = HeadLayout::Named(call_, at_.layout, name);
    out_layout_ = HeadLayout::Named(call_, at_.layout, out_name);
    if (packed() && at_.lengths < 0) {
      call_.RejectArg(at_.layout,
                      "is a packed layout, but the operator takes no lengths of queries");
    }
    heads_ = call_.Int(at_.heads);
    kv_heads_ = call_.Int(at_.kv_heads) == 0 ? heads_ : call_.Int(at_.kv_heads);
    if (heads_ < 1 || kv_heads_ < 1 || heads_ % kv_heads_ != 0) {
      call_.RejectArg(at_.kv_heads, "does not divide the number of heads");
    }
  }

  void ReadQuery() {
    task_.query = layout_.Split(call_, 0, call_.View(0), heads_);
    ExpectFloats(call_, 0, task_.query);
    one_row_ = !packed() && task_.query.size(2) == 1;
  }

  void ReadKeys() {
    const std::vector<Tensor> keys = KeyTensors(call_, 1);
    int8_ = !keys.empty() && keys[0].scalar_type() == at::kChar;
    list_ = keys.size() > 1;
    for (int i : {1, 2}) {
      for (const Tensor& tensor : KeyTensors(call_, i)) ExpectKeyDtype(i, tensor);
    }
    if (Has(at_.table)) {
      const int64_t rows = call_.Int(at_.block_size);
      key_cache_ = ReadKeyBlocks(call_, 1, kv_heads_, rows);
      task_.key = RowsInBlocks(key_cache_, kv_heads_);
      task_.value = RowsInBlocks(ReadKeyBlocks(call_, 2, kv_heads_, rows), kv_heads_);
      if (task_.key.width != task_.query.size(3)) {
        call_.RejectArg(1, "has another width than query");
      }
      task_.block_rows = rows;
      task_.table = call_.View(at_.table);
      call_.ExpectRank(at_.table, task_.table, 2);
      if (task_.table.scalar_type() != at::kInt) call_.RejectArg(at_.table, "is not int32");
      return;
    }
    keys_ = ReadKeyBatches(call_, 1, layout_, batches(), kv_heads_);
    const std::vector<Tensor> values = ReadKeyBatches(call_, 2, layout_, batches(), kv_heads_);
    for (int64_t b = 0; b < batches(); ++b) {
      ExpectKeys(call_, packed() ? task_.query : task_.query.narrow(0, b, 1), keys_[b], values[b]);
    }
    task_.key = task_.value = {.heads = kv_heads_, .width = task_.query.size(3)};
    if (keys_.empty()) return;
    task_.key = RowsOfBatches(keys_);
    task_.value = RowsOfBatches(values);
  }

  // Keys and values have the dtype of the queries, or are both of int8.
  void ExpectKeyDtype(int i, const Tensor& tensor) const {
    if (!int8_) return ExpectQueryDtype(call_, i, tensor, task_.query);
    if (tensor.scalar_type() != at::kChar) call_.RejectArg(i, "is not int8, but key is");
  }

  void ReadRopes() {
    if (!Has(at_.rope)) return;
    task_.query_rope = layout_.Split(call_, at_.rope, call_.View(at_.rope), heads_);
    const Tensor& rope = task_.query_rope;
    const int i = at_.rope + 1;
    ExpectQueryDtype(call_, at_.rope, rope, task_.query);
    if (rope.sizes().slice(0, 3) != task_.query.sizes().slice(0, 3)) {
      call_.RejectArg(at_.rope, "has other rows than query");
    }
    if (call_.IsAbsent(i)) call_.RejectArg(i, "is absent, but queryRope is given");
    if (int8_) {
      call_.RejectArg(at_.rope, "is given beside keys of int8, which the soft device lacks");
    }
    for (const Tensor& tensor : KeyTensors(call_, i)) {
      ExpectQueryDtype(call_, i, tensor, task_.query);
    }
    if (in_blocks()) {
      const KeyRows rows =
          RowsInBlocks(ReadKeyBlocks(call_, i, kv_heads_, task_.block_rows), kv_heads_);
      if (rows.width != rope.size(3)) call_.RejectArg(i, "has another width than queryRope");
      task_.key = WithColumns(task_.key, rows);
      return;
    }
    const std::vector<Tensor> ropes = ReadKeyBatches(call_, i, layout_, batches(), kv_heads_);
    for (size_t b = 0; b < ropes.size(); ++b) {
      if (ropes[b].size(2) != keys_[b].size(2) || ropes[b].size(3) != rope.size(3)) {
        call_.RejectArg(i, "does not fit key and queryRope");
      }
    }
    if (!ropes.empty()) task_.key = WithColumns(task_.key, RowsOfBatches(ropes));
  }

  void ReadPlaces() {
    // A query of one row has no rows to leave out: its lengths are not looked at.
    const int lengths_index = one_row_ ? -1 : at_.lengths;
    const int64_t rows = task_.query.size(2);
    const Lengths lengths = packed() ? PackedLengths(call_, lengths_index, rows)
                                     : BatchLengths(call_, lengths_index, Lengths(batches(), rows));
    task_.partial = Has(lengths_index);
    Lengths whole;
    if (in_blocks()) {
      whole.assign(lengths.size(), task_.table.size(1) * task_.block_rows);
    } else {
      for (const Tensor& key : keys_) whole.push_back(key.size(2));
    }
    // With a table each sequence has its own length of keys in every layout.
    const Lengths key_lengths = packed() && !in_blocks()
                                    ? PackedLengths(call_, at_.key_lengths, whole.at(0))
                                    : BatchLengths(call_, at_.key_lengths, whole);
    if (lengths.size() != key_lengths.size()) {
      call_.RejectArg(at_.key_lengths, "has another number of sequences than actualSeqLengths");
    }
    for (int64_t rows : whole) most_keys_ = std::max(most_keys_, rows);
    task_.places = PlaceSequences(lengths, key_lengths, packed());
    if (in_blocks()) {
      for (SequencePlace& place : task_.places) place.first_key = 0;
    }
    if (in_blocks() && task_.table.size(0) < count()) {
      call_.RejectArg(at_.table, "has fewer rows than sequences");
    }
  }

  void ReadScales() {
    if (!int8_) return ExpectNoCacheScales(call_, at_);
    ScaledCache cache{.query = task_.query.scalar_type(),
                      .one_row = one_row_,
                      .packed = packed(),
                      .sequences = count(),
                      .rows = most_keys_};
    if (in_blocks()) {
      cache.blocks = key_cache_.size(0);
      cache.block_rows = task_.block_rows;
    }
    const CacheScales scales = ReadCacheScales(call_, at_, cache, task_.key, task_.value);
    scales_of_rows_ = scales.key.of_rows || scales.value.of_rows;
    key_scale_ = scales.key;
    value_scale_ = scales.value;
    task_.key = key_scale_.Apply(task_.key);
    task_.value = value_scale_.Apply(task_.value);
  }

  // Keys and values that lie before those of every sequence.
  void ReadPrefix() {
    const int i = at_.prefix;
    if (i < 0 || (call_.IsAbsent(i) && call_.IsAbsent(i + 1))) {
      if (i >= 0 && Has(i + 2)) call_.RejectArg(i + 2, "is given without a shared prefix");
      return;
    }
    for (int part : {i, i + 1}) {
      if (call_.IsAbsent(part)) call_.RejectArg(part, "is absent, but the other prefix is given");
    }
    const char* reason = packed()                     ? "a packed layout"
                         : in_blocks()                ? "a table of blocks"
                         : list_                      ? "a list of keys"
                         : task_.query_rope.defined() ? "queryRope"
                         : scales_of_rows_            ? "scales of rows"
                         : HasPaddings()              ? "left padding"
                                                      : nullptr;
    if (reason != nullptr) call_.RejectArg(i, std::string("is given beside ") + reason);
    KeyRows parts[2];
    int64_t rows = 0;
    for (int which : {0, 1}) {
      const KeyRows& own = which == 0 ? task_.key : task_.value;
      const Tensor prefix = layout_.Split(call_, i + which, call_.View(i + which), kv_heads_);
      ExpectKeyDtype(i + which, prefix);
      if (prefix.size(0) != 1) call_.RejectArg(i + which, "has more than one batch");
      if (prefix.size(3) != own.width) {
        call_.RejectArg(i + which,
                        std::string("has another width than ") + (which == 0 ? "key" : "value"));
      }
      if (which == 1 && prefix.size(2) != rows) {
        call_.RejectArg(i + 1, "has other rows than keySharedPrefix");
      }
      rows = prefix.size(2);
      parts[which] = RowsOfBatches({prefix});
      if (int8_) parts[which] = (which == 0 ? key_scale_ : value_scale_).Apply(parts[which]);
    }
    if (Has(i + 2)) {
      const Lengths given = call_.Ints(i + 2);
      if (given.size() != 1) call_.RejectArg(i + 2, "has not one entry");
      if (given[0] < 0 || given[0] > rows) call_.RejectArg(i + 2, "exceeds the prefix");
      rows = given[0];
    }
    task_.prefix = rows;
    task_.key = After(task_.key, parts[0], rows);
    task_.value = After(task_.value, parts[1], rows);
  }

  // Padding counts only beside lengths; that of queries only for more than one row.
  bool PadsQueries() const { return Has(at_.query_padding) && !one_row_ && Has(at_.lengths); }
  bool PadsKeys() const {
    // A step with keys in blocks or in a list takes them from the beginning, padded or not.
    return Has(at_.key_padding) && Has(at_.key_lengths) && !(one_row_ && (in_blocks() || list_));
  }
  bool HasPaddings() const { return PadsQueries() || PadsKeys(); }

  void ReadPaddings() {
    if (PadsQueries()) task_.query_padding = ReadPadding(at_.query_padding);
    if (PadsKeys()) task_.key_padding = ReadPadding(at_.key_padding);
    task_.key_rows = most_keys_;
  }

  Tensor ReadPadding(int i) const {
    const char* reason = packed()                     ? "a packed layout"
                         : in_blocks()                ? "a table of blocks"
                         : list_                      ? "a list of keys"
                         : task_.query_rope.defined() ? "queryRope"
                                                      : nullptr;
    if (reason != nullptr) call_.RejectArg(i, std::string("is given beside ") + reason);
    const Tensor padding = call_.View(i);
    ExpectDtypes(call_, i, padding, {at::kLong});
    if (padding.numel() != 1) call_.RejectArg(i, "has not one element");
    return padding;
  }

  // The mask, the bias and the sink of the scores.
  void ReadScoreTerms() {
    task_.mask = ReadScoreMask(call_, 4, at_.pre, at_.next, at_.mode);
    const bool own_mask = at_.mode < 0 || call_.Int(at_.mode) < 2;
    // One row, or rows that end together, take a mask of mode 0 as it is.
    if (own_mask && (one_row_ || HasPaddings())) task_.mask.band = false;
    task_.mask.mask = OfScores(4, task_.mask.mask);
    if (!call_.IsAbsent(3)) task_.bias = OfScores(3, call_.View(3));
    if (!Has(at_.sink)) return;
    task_.sink = call_.View(at_.sink);
    call_.ExpectSizes(at_.sink, task_.sink, {heads_});
  }

  // A mask or bias as [batches or 1, heads or 1, queries or 1, keys or 1]; rejects one that is too
  // small for a sequence.
  Tensor OfScores(int i, const Tensor& given) const {
    if (!given.defined()) return given;
    if (given.dim() > 4) call_.RejectArg(i, "has more than 4 dims");
    Tensor tensor = given;
    if (tensor.dim() == 2 && one_row_ && tensor.size(0) == batches()) tensor = tensor.unsqueeze(1);
    if (tensor.dim() == 3) tensor = tensor.unsqueeze(1);
    while (tensor.dim() < 4) tensor = tensor.unsqueeze(0);
    if (tensor.size(0) > 1 && batches() > tensor.size(0)) {
      call_.RejectArg(i, "has fewer batches than query");
    }
    for (const SequencePlace& place : task_.places) {
      // Rows that end together lie where the queries and keys lie.
      const int64_t queries = task_.query_padding.defined() ? task_.query.size(2) : place.queries;
      const int64_t keys = task_.prefix + (task_.key_padding.defined() ? most_keys_ : place.keys);
      const bool fits = (tensor.size(2) == 1 || tensor.size(2) >= queries) &&
                        (tensor.size(3) == 1 || tensor.size(3) >= keys);
      if (fits) continue;
      call_.RejectArg(i, "has shape " + SizesText(given.sizes()) + ", too small for " +
                             std::to_string(queries) + " queries and " + std::to_string(keys) +
                             " keys");
    }
    return tensor;
  }

  void ReadOutputs() {
    const Tensor& query = task_.query;
    const int64_t width = task_.value.width;
    task_.given = call_.Out(at_.out);
    call_.ExpectSizes(at_.out, task_.given,
                      out_layout_.Sizes({query.size(0), heads_, query.size(2), width}));
    task_.out = out_layout_.Split(call_, at_.out, task_.given, heads_);
    task_.out_scale = ReadOutScale(call_, at_.out_scale, at_.out, task_.given, query.scalar_type(),
                                   heads_, width);
    if (at_.lse_flag < 0 || !call_.Bool(at_.lse_flag)) return;
    task_.lse = call_.Out(at_.lse);
    const Lengths rows = packed() ? Lengths{query.size(2), heads_, 1}
                                  : Lengths{query.size(0), heads_, query.size(2), 1};
    call_.ExpectSizes(at_.lse, task_.lse, rows);
    if (packed()) task_.lse = task_.lse.permute({1, 0, 2}).unsqueeze(0);
  }

  const Call& call_;
  const InferArguments& at_;
  HeadLayout layout_, out_layout_;
  int64_t heads_ = 0, kv_heads_ = 0;
  bool one_row_ = false;         // one query a sequence
  bool int8_ = false;            // keys and values are
  bool list_ = false;            // each batch has a tensor of keys of its own
  bool scales_of_rows_ = false;  // keys and values have a scale for each row
  int64_t most_keys_ = 0;        // a sequence may have so many
  std::vector<Tensor> keys_;     // one for each batch, where there is no table
  Tensor key_cache_;             // where there is one
  CacheScale key_scale_, value_scale_;
  InferTask task_;
};

}  // namespace

KernelRows InferAttentionRows() {
  const auto infer = [](const InferArguments& at) {
    return [&at](const Call& call) -> std::unique_ptr<Kernel> {
      return MakeKernel([task = InferBinder(call, at).Bind()] { task.Run(); });
    };
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
