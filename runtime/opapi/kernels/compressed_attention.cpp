// Attention over compressed keys for native sparse attention, and the blocks of keys that matter
// most to each query. Computed in float32 and rounded once at the end.
#include <ATen/ATen.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "runtime/opapi/engine/kernel_table.h"
#include "runtime/opapi/kernels/attention.h"
#include "runtime/opapi/kernels/expect_dtypes.h"
#include "runtime/opapi/kernels/packed_statistics.h"
#include "runtime/opapi/kernels/sequence_lengths.h"
#include "runtime/opapi/kernels/table_rows.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

constexpr double kChosen = std::numeric_limits<double>::infinity();

// Compressed keys cover windows of `window` rows, one each `stride` rows; selected blocks have
// `block` rows.
struct BlockScores {
  int64_t window = 0, stride = 0, block = 0, count = 0;

  // How many blocks the rows of `keys` compressed keys are, as the page of the training operator
  // counts them.
  int64_t Blocks(int64_t keys) const {
    const int64_t each = block / stride;
    return (keys + each - 1) / each;
  }

  // How often the score of each compressed key counts for each block: [keys, blocks].
  Tensor Weights(int64_t keys, int64_t blocks) const {
    const Tensor weights = at::zeros({keys, blocks}, at::kFloat);
    auto count_of = weights.accessor<float, 2>();
    for (int64_t b = 0; b < blocks; ++b) {
      for (int64_t m = 0; m < block / stride; ++m) {
        for (int64_t n = 0; n < window / stride; ++n) {
          const int64_t key = block / stride * (b + 1) - m - n;
          if (key >= 0 && key < keys) count_of[key][b] += 1;
        }
      }
    }
    return weights;
  }

  // The blocks in order of their scores, the first of equal ones first. `scores` are
  // [..., blocks].
  Tensor Best(const Tensor& scores) const {
    const auto sorted = at::sort(scores, /*stable=*/true, /*dim=*/-1, /*descending=*/true);
    return std::get<1>(sorted).narrow(-1, 0, count).to(at::kInt);
  }
};

// (selectBlockSize, selectBlockCount, compressBlockSize, compressStride) at these positions.
struct BlockArguments {
  int block, count, window, stride;
};

BlockScores ReadBlockScores(const Call& call, const BlockArguments& at) {
  const auto read = [&](int i, int64_t most) {
    const int64_t value = call.Int(i);
    if (value < 16 || value % 16 != 0 || value > most) {
      call.RejectArg(i, "must be a multiple of 16, at most " + std::to_string(most));
    }
    return value;
  };
  BlockScores scores;
  scores.window = read(at.window, 128);
  scores.stride = read(at.stride, 64);
  scores.block = read(at.block, 128);
  scores.count = call.Int(at.count);
  if (scores.window < scores.stride) call.RejectArg(at.stride, "is above compressBlockSize");
  if (scores.block < scores.window) call.RejectArg(at.block, "is below compressBlockSize");
  if (scores.block % scores.stride != 0) {
    call.RejectArg(at.block, "is no multiple of the stride");
  }
  if (scores.count < 1) call.RejectArg(at.count, "must be at least 1");
  return scores;
}

void ExpectHeadGroups(const Call& call, int i, int64_t heads, int64_t key_heads, int64_t most) {
  const int64_t group = key_heads < 1 ? 0 : heads / key_heads;
  if (group < 1 || heads % key_heads != 0 || group > most || 128 % group != 0) {
    call.RejectArg(
        i, "must serve groups of heads whose number divides 128, at most " + std::to_string(most));
  }
}

// The scores of the blocks, added over the queries' heads that share a head of the keys: [1, key
// heads, queries, blocks].
Tensor ScoresOfBlocks(const Tensor& weights_of_keys, int64_t key_heads, const BlockScores& blocks,
                      int64_t count) {
  const Tensor spread = blocks.Weights(weights_of_keys.size(-1), count);
  const Tensor each = at::matmul(weights_of_keys, spread);
  return each.unflatten(1, {key_heads, each.size(1) / key_heads}).sum(2);
}

// The softmax of the scores; a query that is left with no score has weights of 0.
Tensor WeightsOf(const Tensor& query, const Tensor& key, const AttentionTerms& terms) {
  const Tensor weights = at::softmax(AttentionScores(query, key, terms), -1);
  return weights.masked_fill(weights.isnan(), 0);
}

struct CompressedCall {
  Tensor query, key, value;  // [1, heads, rows, width]
  Tensor mask, block_mask;   // [queries, keys] and [queries, blocks]; may be undefined
  std::vector<SequencePlace> sequences;
  Lengths block_counts;
  BlockScores blocks;
  double scale = 1;

  AttentionTerms Terms(const SequencePlace& place) const {
    AttentionTerms terms;
    terms.scale = scale;
    if (mask.defined()) {
      terms.left_out = mask.narrow(0, 0, place.queries).narrow(1, 0, place.keys).to(at::kBool);
    }
    return terms;
  }

  // The chosen blocks of each query of a sequence: [1, key heads, queries, chosen].
  Tensor Chosen(const SequencePlace& place, int64_t count, const Tensor& weights) const {
    Tensor scores = ScoresOfBlocks(weights, key.size(1), blocks, count);
    if (block_mask.defined()) {
      const Tensor own = block_mask.narrow(0, 0, place.queries).narrow(1, 0, count);
      scores = scores.masked_fill(own.to(at::kBool), kChosen);
    }
    return blocks.Best(scores);
  }
};

// A mask of truth values for the longest sequence.
Tensor ReadLongest(const Call& call, int i, const std::vector<SequencePlace>& places,
                   const Lengths& columns) {
  if (call.IsAbsent(i)) return {};
  const Tensor mask = call.View(i);
  ExpectDtypes(call, i, mask, {at::kBool, at::kByte});
  call.ExpectRank(i, mask, 2);
  for (size_t s = 0; s < places.size(); ++s) {
    if (mask.size(0) < places[s].queries || mask.size(1) < columns[s]) {
      call.RejectArg(i, "must be a matrix of the longest sequence's queries and keys");
    }
  }
  return mask;
}

Tensor HeadsOfRows(const Call& call, int i) {
  const Tensor view = call.View(i);
  call.ExpectRank(i, view, 3);
  if (view.numel() == 0) call.RejectArg(i, "is empty");
  ExpectDtypes(call, i, view, {at::kHalf, at::kBFloat16});
  ExpectQueryDtype(call, i, view, call.View(0));
  return view.transpose(0, 1).unsqueeze(0);
}

CompressedCall ReadCompressed(const Call& call) {
  CompressedCall compressed;
  if (call.Text(10) != "TND") call.RejectArg(10, "must be \"TND\"");
  if (call.Int(11) != 0 && call.Int(11) != 1) call.RejectArg(11, "must be 0 or 1");
  compressed.query = HeadsOfRows(call, 0);
  compressed.key = HeadsOfRows(call, 1);
  compressed.value = HeadsOfRows(call, 2);
  ExpectKeys(call, compressed.query, compressed.key, compressed.value);
  if (compressed.value.size(3) > compressed.key.size(3)) call.RejectArg(2, "is wider than key");
  if (compressed.query.size(1) != call.Int(9)) {
    call.RejectArg(9, "is not query's number of heads");
  }
  ExpectHeadGroups(call, 1, compressed.query.size(1), compressed.key.size(1), 64);
  compressed.scale = call.Real(8);
  compressed.blocks = ReadBlockScores(call, {14, 15, 12, 13});
  if (compressed.blocks.count > 32) call.RejectArg(15, "must be at most 32");

  const Lengths lengths = PackedLengths(call, 5, compressed.query.size(2));
  const Lengths key_lengths = PackedLengths(call, 6, compressed.key.size(2));
  for (int i : {6, 7}) {
    if (call.Ints(i).size() != lengths.size()) {
      call.RejectArg(i, "has another number of sequences than actualSeqQLen");
    }
  }
  compressed.block_counts = PackedLengths(call, 7, std::numeric_limits<int64_t>::max());
  for (size_t s = 0; s < lengths.size(); ++s) {
    if (key_lengths[s] > 14000) call.RejectArg(6, "has a sequence of more than 14000 keys");
    if (compressed.block_counts[s] != compressed.blocks.Blocks(key_lengths[s])) {
      call.RejectArg(7, "does not fit the sequences' compressed keys");
    }
    if (compressed.block_counts[s] < compressed.blocks.count) {
      call.RejectArg(15, "is above the number of a sequence's blocks");
    }
  }
  compressed.sequences = PlaceSequences(lengths, key_lengths, /*packed=*/true);
  compressed.mask = ReadLongest(call, 3, compressed.sequences, key_lengths);
  compressed.block_mask = ReadLongest(call, 4, compressed.sequences, compressed.block_counts);
  return compressed;
}

// (query, key, value, attenMask?, topkMask?, actualSeqQLen, actualCmpSeqKvLen, actualSelSeqKvLen,
// scaleValue, headNum, layout, sparseMode, compressBlockSize, compressStride, selectBlockSize,
// selectBlockCount, softmaxMax, softmaxSum, attentionOut, topkIndices)
std::unique_ptr<Kernel> BindCompressed(const Call& call) {
  const CompressedCall compressed = ReadCompressed(call);
  const int64_t rows = compressed.query.size(2), heads = compressed.query.size(1);
  const int64_t key_heads = compressed.key.size(1);
  const Tensor maximum = call.Out(16), sum = call.Out(17), out = call.Out(18), topk = call.Out(19);
  for (int i : {16, 17}) {
    call.ExpectSizes(i, call.View(i), {rows, heads, 8});
    ExpectDtypes(call, i, call.View(i), {at::kFloat});
  }
  call.ExpectSizes(18, out, {rows, heads, compressed.value.size(3)});
  ExpectDtypes(call, 18, out, {compressed.query.scalar_type()});
  call.ExpectSizes(19, topk, {rows, key_heads, compressed.blocks.count});
  ExpectDtypes(call, 19, topk, {at::kInt});
  return MakeKernel([=] {
    const auto order = StatisticOrder::kHeadsOfSequence;
    const PackedStatistic peaks = PackedStatistic::Empty(rows, heads, order);
    const PackedStatistic totals = PackedStatistic::Empty(rows, heads, order);
    for (const Tensor& all : {out, topk}) Tensor(all).zero_();
    for (size_t s = 0; s < compressed.sequences.size(); ++s) {
      const SequencePlace& place = compressed.sequences[s];
      if (place.queries == 0) continue;
      const AttentionTerms terms = compressed.Terms(place);
      const Tensor query = place.Queries(compressed.query), key = place.Keys(compressed.key);
      const AttentionResult result = Attend(query, key, place.Keys(compressed.value), terms);
      const std::vector<int64_t> sizes = {1, heads, place.queries, 8};
      peaks.Sequence(place.first_query, place.queries).copy_(result.maximum.expand(sizes));
      totals.Sequence(place.first_query, place.queries).copy_(result.sum.expand(sizes));
      const auto rows_of = [&](const Tensor& all) {
        return all.narrow(0, place.first_query, place.queries).transpose(0, 1).unsqueeze(0);
      };
      rows_of(out).copy_(result.out);
      rows_of(topk).copy_(
          compressed.Chosen(place, compressed.block_counts[s], WeightsOf(query, key, terms)));
    }
    peaks.CopyTo(maximum);
    totals.CopyTo(sum);
  });
}

// One query of each sequence, whose compressed keys lie in blocks of a cache.
struct CompressedStep {
  Tensor query;              // [sequences, heads, width]
  Tensor key, value, table;  // [blocks, rows, key heads, width]
  Lengths lengths;
  BlockScores blocks;
  double scale = 1;

  // How many blocks the rows are that `keys` compressed keys stand for.
  int64_t BlocksOf(int64_t keys) const {
    return ((keys - 1) * blocks.stride + blocks.window + blocks.block - 1) / blocks.block;
  }

  // The result [heads, width of a value] and the chosen blocks [key heads, chosen] of a sequence.
  // The first block and the last two are always chosen.
  std::pair<Tensor, Tensor> Run(int64_t s) const {
    const Tensor rows = at::arange(lengths[s], at::kLong), ids = table[s].to(at::kLong);
    const auto own = [&](const Tensor& cache) {
      return RowsOfTable(cache, ids, rows).transpose(0, 1).unsqueeze(0);
    };
    AttentionTerms terms;
    terms.scale = scale;
    const Tensor queries = query[s].unsqueeze(1).unsqueeze(0), keys = own(key);
    const Tensor out = Attend(queries, keys, own(value), terms).out.view({query.size(1), -1});
    const int64_t count = BlocksOf(lengths[s]);
    const Tensor scores =
        ScoresOfBlocks(WeightsOf(queries, keys, terms), keys.size(1), blocks, count)
            .view({keys.size(1), count});
    scores.select(1, 0).fill_(kChosen);
    scores.slice(1, std::max<int64_t>(count - 2, 0)).fill_(kChosen);
    return {out, blocks.Best(scores)};
  }
};

// A cache of [blocks, rows, heads * width] as [blocks, rows, heads, width].
Tensor ReadCompressedCache(const Call& call, int i, int64_t heads, int64_t page) {
  const Tensor cache = call.View(i);
  ExpectQueryDtype(call, i, cache, call.View(0));
  call.ExpectRank(i, cache, 3);
  if (cache.numel() == 0) call.RejectArg(i, "is empty");
  if (cache.size(1) != page) call.RejectArg(i, "has blocks of other rows than pageBlockSize");
  if (cache.size(2) % heads != 0) call.RejectArg(i, "does not split into the heads");
  return cache.unflatten(2, {heads, cache.size(2) / heads});
}

// A tensor with one row a sequence, [sequences, 1, heads, width] or without the 1, without it.
Tensor WithoutPosition(const Call& call, int i, const Tensor& given, bool has_position) {
  call.ExpectRank(i, given, has_position ? 4 : 3);
  if (!has_position) return given;
  if (given.size(1) != 1) {
    call.RejectArg(i, "has more than one row a sequence, which the soft device lacks");
  }
  return given.squeeze(1);
}

CompressedStep ReadStep(const Call& call, bool has_position) {
  CompressedStep step;
  ExpectDtypes(call, 0, call.View(0), {at::kHalf, at::kBFloat16});
  step.query = WithoutPosition(call, 0, call.View(0), has_position);
  if (step.query.numel() == 0) call.RejectArg(0, "is empty");
  const int64_t sequences = step.query.size(0), heads = call.Int(9), key_heads = call.Int(10);
  if (step.query.size(1) != heads) call.RejectArg(9, "is not query's number of heads");
  ExpectHeadGroups(call, 10, heads, key_heads, 128);
  const int64_t page = call.Int(17);
  if (page < 16 || page > 128 || page % 16 != 0) {
    call.RejectArg(17, "must be a multiple of 16, at most 128");
  }
  step.key = ReadCompressedCache(call, 1, key_heads, page);
  step.value = ReadCompressedCache(call, 2, key_heads, page);
  const int64_t width = step.query.size(2), value_width = step.value.size(3);
  if (width > 192) call.RejectArg(0, "is wider than 192");
  if (step.key.size(3) != width) call.RejectArg(1, "has another width than query");
  if (value_width > 128 || value_width > width) {
    call.RejectArg(2, "must be at most as wide as key and 128");
  }
  if (step.value.size(0) != step.key.size(0)) call.RejectArg(2, "has other blocks than key");
  step.blocks = ReadBlockScores(call, {11, 12, 13, 14});
  step.scale = call.Real(15);

  if (call.IsAbsent(4)) call.RejectArg(4, "is absent, but the operator takes keys in blocks");
  step.table = call.View(4);
  ExpectDtypes(call, 4, step.table, {at::kInt});
  call.ExpectRank(4, step.table, 2);
  if (step.table.size(0) != sequences) call.RejectArg(4, "has not one row for each sequence");
  for (int64_t length : call.Ints(5)) {
    if (length != 1) call.RejectArg(5, "must be 1; the soft device has one query a sequence");
  }
  step.lengths = call.Ints(6);
  if (static_cast<int64_t>(step.lengths.size()) != sequences) {
    call.RejectArg(6, "has not one entry for each sequence");
  }
  for (int64_t length : step.lengths) {
    if (length < 1 || length > std::min<int64_t>(step.table.size(1) * page, 8192)) {
      call.RejectArg(6, "must be between 1 and the rows of the table, at most 8192");
    }
    const int64_t count = step.BlocksOf(length);
    if (count > 4096) call.RejectArg(6, "stands for more than 4096 blocks");
    if (count < step.blocks.count) {
      call.RejectArg(12, "is above the number of a sequence's blocks");
    }
  }
  return step;
}

// (query, key, value, attentionMask?, blockTable, actualQSeqLen?, actualCmpKvSeqLen,
// actualSelKvSeqLen?, topKMask?, numHeads, numKeyValueHeads, selectBlockSize, selectBlockCount,
// compressBlockSize, compressBlockStride, scaleValue, layout, pageBlockSize, sparseMode, output,
// topKOutput). The masks and the lengths of selected keys count for several queries a sequence
// only.
std::unique_ptr<Kernel> BindCompressedInfer(const Call& call) {
  const std::string layout = call.Text(16);
  if (layout != "TND" && layout != "BSND") call.RejectArg(16, "must be \"TND\" or \"BSND\"");
  const bool has_position = layout == "BSND";
  const CompressedStep step = ReadStep(call, has_position);
  const Tensor out = WithoutPosition(call, 19, call.Out(19), has_position);
  const Tensor topk = WithoutPosition(call, 20, call.Out(20), has_position);
  const int64_t sequences = step.query.size(0);
  call.ExpectSizes(19, out, {sequences, step.query.size(1), step.value.size(3)});
  ExpectDtypes(call, 19, out, {step.query.scalar_type()});
  call.ExpectSizes(20, topk, {sequences, step.key.size(2), step.blocks.count});
  ExpectDtypes(call, 20, topk, {at::kInt});
  return MakeKernel([=] {
    for (int64_t s = 0; s < sequences; ++s) {
      const auto [result, chosen] = step.Run(s);
      out[s].copy_(result);
      topk[s].copy_(chosen);
    }
  });
}

}  // namespace

KernelRows CompressedAttentionRows() {
  return {
      {"aclnnNsaCompressAttention", BindCompressed},
      {"aclnnNsaCompressAttentionInfer", BindCompressedInfer},
  };
}

}  // namespace acltape::opapi
