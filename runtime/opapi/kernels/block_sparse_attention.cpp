// Attention over the blocks of scores that a mask names, forward and backward. Each block of
// queries meets only the keys of its blocks, so work and memory follow the mask. Computed in
// float32 and rounded once at the end.
#include <algorithm>
#include <limits>
#include <numeric>

#include "runtime/opapi/engine/kernel_table.h"
#include "runtime/opapi/kernels/attention.h"
#include "runtime/opapi/kernels/expect_dtypes.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

// The positions of the arguments that both directions have, in a version of an operator, and the
// limits of the direction.
struct BlockSparseArguments {
  std::vector<int> absent;  // masks of scores, tables of pages, scales of quantisation
  int query, mask, shape, lengths, key_lengths;
  int layout;     // the queries' layout; that of the keys follows
  int key_heads;  // the kind of mask follows
  int scale;
  int precise, block_size;  // -1: the operator has no such argument
  int pre;                  // next follows
  int flag;                 // asks for the logarithms of the sums; -1: there is no such argument
  int outputs;              // the first one
  std::vector<int64_t> widths;
  int64_t key_multiple;  // a block's number of keys is a multiple of it
};

const BlockSparseArguments kBlockSparse = {.absent = {4, 8},
                                           .query = 0,
                                           .mask = 3,
                                           .shape = 5,
                                           .lengths = 6,
                                           .key_lengths = 7,
                                           .layout = 9,
                                           .key_heads = 11,
                                           .scale = 13,
                                           .precise = 14,
                                           .block_size = 15,
                                           .pre = 16,
                                           .flag = 18,
                                           .outputs = 19,
                                           .widths = {64, 128},
                                           .key_multiple = 128};
const BlockSparseArguments kBlockSparseV2 = {.absent = {4, 8, 9, 10, 11},
                                             .query = 0,
                                             .mask = 3,
                                             .shape = 5,
                                             .lengths = 6,
                                             .key_lengths = 7,
                                             .layout = 12,
                                             .key_heads = 14,
                                             .scale = 16,
                                             .precise = 17,
                                             .block_size = 18,
                                             .pre = 19,
                                             .flag = 21,
                                             .outputs = 22,
                                             .widths = {64, 128},
                                             .key_multiple = 128};
const BlockSparseArguments kBlockSparseGrad = {.absent = {7},
                                               .query = 1,
                                               .mask = 6,
                                               .shape = 8,
                                               .lengths = 9,
                                               .key_lengths = 10,
                                               .layout = 11,
                                               .key_heads = 13,
                                               .scale = 15,
                                               .precise = -1,
                                               .block_size = -1,
                                               .pre = 16,
                                               .flag = -1,
                                               .outputs = 18,
                                               .widths = {128},
                                               .key_multiple = 1};

// The arguments that both directions have, read and checked.
struct BlockSparseCall {
  HeadLayout layout;
  Tensor query, key, value;  // split into heads
  Tensor mask;               // [sequences, heads, blocks of queries, blocks of keys]; 0: left out
  int64_t block_queries = 128, block_keys = 128;
  std::vector<SequencePlace> sequences;
  AttentionTerms terms;

  // The sizes of the logarithms of the sums, one for each query of each head.
  std::vector<int64_t> statistics() const {
    return layout.Sizes({query.size(0), query.size(1), query.size(2), 1});
  }
};

// Numbers for abilities that the operator does not have yet: it takes only those that ask for none.
void ExpectReserved(const Call& call, const BlockSparseArguments& at) {
  constexpr int64_t kUnbounded = std::numeric_limits<int32_t>::max();
  const struct {
    int position;
    int64_t value;
    const char* lacks;
  } reserved[] = {{at.key_heads + 1, 0, "masks of scores"},
                  {at.block_size, 0, "pages of keys"},
                  {at.pre, kUnbounded, "sliding windows"},
                  {at.pre + 1, kUnbounded, "sliding windows"}};
  for (const auto& [position, value, lacks] : reserved) {
    if (position < 0 || call.Int(position) == value) continue;
    call.RejectArg(position, "is " + std::to_string(call.Int(position)) + ", but must be " +
                                 std::to_string(value) + ": the operator lacks " + lacks);
  }
}

void ExpectPrecision(const Call& call, int i, const Tensor& query) {
  if (i < 0) return;
  const int64_t precise = call.Int(i);
  if (precise != 0 && precise != 1) {
    call.RejectArg(i, "is " + std::to_string(precise) + ", but must be 0 or 1");
  }
  if (precise == 1 && query.scalar_type() == at::kBFloat16) {
    call.RejectArg(i, "is 1, but must be 0 where query is bfloat16");
  }
}

HeadLayout ReadLayout(const Call& call, int i) {
  const std::string name = call.Text(i), key_name = call.Text(i + 1);
  if (name != "TND" && name != "BNSD") {
    call.RejectArg(i, "is \"" + name + "\", but must be \"TND\" or \"BNSD\"");
  }
  if (key_name != name) {
    call.RejectArg(
        i + 1, "is \"" + key_name + "\", but qInputLayout is \"" + name + "\"; both must be equal");
  }
  return HeadLayout::Named(call, i, name);
}

void ReadTensors(const Call& call, const BlockSparseArguments& at, BlockSparseCall& sparse) {
  const int key = at.query + 1, value = at.query + 2;
  const Tensor view = call.View(at.query);
  ExpectDtypes(call, at.query, view, {at::kHalf, at::kBFloat16});
  for (int i : {key, value}) ExpectQueryDtype(call, i, call.View(i), view);
  // Both layouts have the heads in dim 1. Split rejects other ranks.
  const int64_t heads = view.dim() > 1 ? view.size(1) : 0, key_heads = call.Int(at.key_heads);
  sparse.query = sparse.layout.Split(call, at.query, view, heads);
  sparse.key = sparse.layout.Split(call, key, call.View(key), key_heads);
  sparse.value = sparse.layout.Split(call, value, call.View(value), key_heads);
  ExpectKeys(call, sparse.query, sparse.key, sparse.value, key);
  const int64_t width = sparse.query.size(3);
  if (sparse.value.size(3) != width) call.RejectArg(value, "has another width than query");
  if (std::find(at.widths.begin(), at.widths.end(), width) == at.widths.end()) {
    call.RejectArg(at.query, "has width " + std::to_string(width) +
                                 ", but the operator takes the widths " + SizesText(at.widths));
  }
}

// The length of each sequence. Packed sequences fill the tensor; others may be shorter than it.
std::vector<int64_t> ReadLengths(const Call& call, int i, const Tensor& split, bool packed) {
  const int64_t rows = split.size(2);
  if (call.IsAbsent(i)) {
    if (packed) call.RejectArg(i, "is absent, which the layout \"TND\" needs");
    return std::vector<int64_t>(split.size(0), rows);
  }
  const std::vector<int64_t> lengths = call.Ints(i);
  if (!packed && static_cast<int64_t>(lengths.size()) != split.size(0)) {
    call.RejectArg(i, "has " + std::to_string(lengths.size()) + " entries for " +
                          std::to_string(split.size(0)) + " sequences");
  }
  for (int64_t length : lengths) {
    if (length < 0 || length > rows) {
      call.RejectArg(i, "has the length " + std::to_string(length) + " for a tensor of " +
                            std::to_string(rows) + " rows");
    }
  }
  const int64_t sum = std::accumulate(lengths.begin(), lengths.end(), int64_t{0});
  if (packed && sum != rows) {
    call.RejectArg(i, "has lengths with the sum " + std::to_string(sum) + " for a tensor of " +
                          std::to_string(rows) + " rows");
  }
  return lengths;
}

void ReadSequences(const Call& call, const BlockSparseArguments& at, BlockSparseCall& sparse) {
  const bool packed = sparse.layout.packed();
  const std::vector<int64_t> lengths = ReadLengths(call, at.lengths, sparse.query, packed);
  const std::vector<int64_t> key_lengths = ReadLengths(call, at.key_lengths, sparse.key, packed);
  if (call.IsAbsent(at.lengths) != call.IsAbsent(at.key_lengths)) {
    call.RejectArg(at.key_lengths, "and actualSeqLengthsOptional must be given together");
  }
  if (lengths.size() != key_lengths.size()) {
    call.RejectArg(at.key_lengths, "has another number of sequences than actualSeqLengthsOptional");
  }
  sparse.sequences = PlaceSequences(lengths, key_lengths, packed);
}

void ReadBlocks(const Call& call, const BlockSparseArguments& at, BlockSparseCall& sparse) {
  if (!call.IsAbsent(at.shape)) {
    const std::vector<int64_t> shape = call.Ints(at.shape);
    if (shape.size() < 2 || shape[0] < 1 || shape[1] < 1) {
      call.RejectArg(at.shape, "must hold two positive numbers, of queries and of keys");
    }
    if (shape[1] % at.key_multiple != 0) {
      call.RejectArg(at.shape, "has blocks of " + std::to_string(shape[1]) +
                                   " keys, but must have a multiple of " +
                                   std::to_string(at.key_multiple));
    }
    sparse.block_queries = shape[0];
    sparse.block_keys = shape[1];
  }
  if (call.IsAbsent(at.mask)) {
    call.RejectArg(at.mask, "is absent; the operator lacks attention without a mask of blocks");
  }
  sparse.mask = call.View(at.mask);
  ExpectByteMask(call, at.mask, sparse.mask);
  // The mask covers the longest sequences, or all rows of tensors that are not packed.
  SequencePlace longest{};
  for (const SequencePlace& place : sparse.sequences) {
    longest.queries = std::max(longest.queries, place.queries);
    longest.keys = std::max(longest.keys, place.keys);
  }
  const auto blocks = [&](int64_t queries, int64_t keys) {
    const auto count = [](int64_t rows, int64_t block) {
      return rows / block + (rows % block == 0 ? 0 : 1);
    };
    return std::vector<int64_t>{static_cast<int64_t>(sparse.sequences.size()), sparse.query.size(1),
                                count(queries, sparse.block_queries),
                                count(keys, sparse.block_keys)};
  };
  if (!sparse.layout.packed() &&
      sparse.mask.sizes() == blocks(sparse.query.size(2), sparse.key.size(2))) {
    return;
  }
  call.ExpectSizes(at.mask, sparse.mask, blocks(longest.queries, longest.keys));
}

BlockSparseCall ReadBlockSparse(const Call& call, const BlockSparseArguments& at) {
  ExpectAbsent(call, at.absent);
  ExpectReserved(call, at);
  BlockSparseCall sparse;
  sparse.layout = ReadLayout(call, at.layout);
  ReadTensors(call, at, sparse);
  ExpectPrecision(call, at.precise, sparse.query);
  ReadSequences(call, at, sparse);
  ReadBlocks(call, at, sparse);
  sparse.terms.scale = call.Real(at.scale);
  return sparse;
}

// A block of queries of one head, and the keys that its blocks hold.
struct BlockRow {
  SequencePlace place;
  int64_t head, key_head, first, count;
  Tensor keys;  // positions in the sequence

  Tensor Queries(const Tensor& split) const {
    return place.Queries(split).narrow(1, head, 1).narrow(2, first, count);
  }
  // All keys of the sequence in the head that serves this one.
  Tensor KeyHead(const Tensor& split) const { return place.Keys(split).narrow(1, key_head, 1); }
  Tensor Keys(const Tensor& split) const { return KeyHead(split).index_select(2, keys); }
};

// Calls `visit` with each block of queries that has keys. It reads the mask, so only a task may
// call it.
template <typename Visit>
void ForEachBlockRow(const BlockSparseCall& sparse, const Visit& visit) {
  const int64_t heads = sparse.query.size(1), sharing = heads / sparse.key.size(1);
  for (size_t s = 0; s < sparse.sequences.size(); ++s) {
    const SequencePlace& place = sparse.sequences[s];
    const Tensor block_of_key = at::arange(place.keys, at::kLong).floor_divide(sparse.block_keys);
    for (int64_t head = 0; head < heads; ++head) {
      const Tensor blocks = sparse.mask[static_cast<int64_t>(s)][head];
      for (int64_t first = 0; first < place.queries; first += sparse.block_queries) {
        const Tensor takes_part = blocks[first / sparse.block_queries].ne(0);
        const Tensor keys = takes_part.index_select(0, block_of_key).nonzero().flatten();
        if (keys.numel() == 0) continue;
        visit(BlockRow{place, head, head / sharing, first,
                       std::min(sparse.block_queries, place.queries - first), keys});
      }
    }
  }
}

// An argument with the logarithm of each query's sum, split into heads.
Tensor LogSumExpOf(const Call& call, int i, const Tensor& view, const BlockSparseCall& sparse) {
  call.ExpectSizes(i, view, sparse.statistics());
  if (view.scalar_type() != at::kFloat) call.RejectArg(i, "must be float32");
  return sparse.layout.Split(call, i, view, sparse.query.size(1));
}

// (query, key, value, ..., softmaxLseFlag, attentionOut, softmaxLse?). Rows without keys are zeros,
// and the logarithm of their sum is minus infinity. Rows after a sequence's length are zeros.
std::unique_ptr<Kernel> BindBlockSparse(const Call& call, const BlockSparseArguments& at) {
  const BlockSparseCall sparse = ReadBlockSparse(call, at);
  const int64_t flag = call.Int(at.flag);
  if (flag != 0 && flag != 1) {
    call.RejectArg(at.flag, "is " + std::to_string(flag) + ", but must be 0 or 1");
  }
  const Tensor given = call.Out(at.outputs);
  call.ExpectSizes(at.outputs, given, call.View(at.query).sizes());
  const Tensor out = sparse.layout.Split(call, at.outputs, given, sparse.query.size(1));
  Tensor lse;
  if (flag == 1) {
    lse = LogSumExpOf(call, at.outputs + 1, call.Out(at.outputs + 1), sparse);
  }
  return MakeKernel([=] {
    const Tensor attended = at::zeros(out.sizes(), at::TensorOptions(at::kFloat));
    if (lse.defined()) {
      Tensor(lse).zero_();
      for (const SequencePlace& place : sparse.sequences) {
        place.Queries(lse).fill_(-std::numeric_limits<double>::infinity());
      }
    }
    ForEachBlockRow(sparse, [&](const BlockRow& row) {
      const AttentionResult result = Attend(row.Queries(sparse.query), row.Keys(sparse.key),
                                            row.Keys(sparse.value), sparse.terms);
      row.Queries(attended).copy_(result.out);
      if (lse.defined()) row.Queries(lse).copy_(result.sum.log() + result.maximum);
    });
    out.copy_(attended);
  });
}

// (dout, query, key, value, attentionOut, softmaxLse, ..., dq, dk, dv). The rows of attentionOut
// follow from the others, so they are checked but not read.
std::unique_ptr<Kernel> BindBlockSparseGrad(const Call& call, const BlockSparseArguments& at) {
  const BlockSparseCall sparse = ReadBlockSparse(call, at);
  const Tensor query = call.View(at.query);
  for (int i : {0, 4}) {
    ExpectQueryDtype(call, i, call.View(i), query);
    call.ExpectSizes(i, call.View(i), query.sizes());
  }
  const Tensor dout = sparse.layout.Split(call, 0, call.View(0), sparse.query.size(1));
  const Tensor lse = LogSumExpOf(call, 5, call.View(5), sparse);
  const auto gradient = [&](int offset, const Tensor& split) {
    const Tensor view = call.Out(at.outputs + offset);
    call.ExpectSizes(at.outputs + offset, view, call.View(at.query + offset).sizes());
    return sparse.layout.Split(call, at.outputs + offset, view, split.size(1));
  };
  const Tensor dq = gradient(0, sparse.query), dk = gradient(1, sparse.key),
               dv = gradient(2, sparse.value);
  return MakeKernel([=] {
    const at::TensorOptions wide(at::kFloat);
    const Tensor of_query = at::zeros(dq.sizes(), wide), of_key = at::zeros(dk.sizes(), wide),
                 of_value = at::zeros(dv.sizes(), wide);
    ForEachBlockRow(sparse, [&](const BlockRow& row) {
      const Tensor maximum = row.Queries(lse), sum = at::ones_like(maximum);
      const AttentionGradients result =
          AttendBackward(row.Queries(dout), row.Queries(sparse.query), row.Keys(sparse.key),
                         row.Keys(sparse.value), maximum, sum, sparse.terms);
      row.Queries(of_query).copy_(result.query);
      row.KeyHead(of_key).index_add_(2, row.keys, result.key);
      row.KeyHead(of_value).index_add_(2, row.keys, result.value);
    });
    dq.copy_(of_query);
    dk.copy_(of_key);
    dv.copy_(of_value);
  });
}

}  // namespace

KernelRows BlockSparseRows() {
  const auto forward = [](const BlockSparseArguments& at) {
    return [&at](const Call& call) { return BindBlockSparse(call, at); };
  };
  return {
      {"aclnnBlockSparseAttention", forward(kBlockSparse)},
      {"aclnnBlockSparseAttentionV2", forward(kBlockSparseV2)},
      {"aclnnBlockSparseAttentionGrad",
       [](const Call& call) { return BindBlockSparseGrad(call, kBlockSparseGrad); }},
  };
}

}  // namespace acltape::opapi
