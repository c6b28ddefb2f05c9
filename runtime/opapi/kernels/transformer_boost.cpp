// Operators that stand for operations of libatb.so (acl/data/atb_ops.json), where no operator of
// the toolkit means the same: attention over sequences that follow each other, the choice of groups
// of experts, and a quantisation.
#include <ATen/ATen.h>

#include <limits>

#include "runtime/opapi/engine/target.h"
#include "runtime/opapi/kernels/attention.h"
#include "runtime/opapi/kernels/quantize.h"
#include "runtime/opapi/kernels/whole.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

// --- Attention: (query [tokens, heads, width], key, value, blockTables?, mask?, seqLen, kvSeqLen,
// qkScale, maskFactor, causal, out). Keys and values are [tokens, heads, width], or with a table
// [blocks, rows, heads, width]. What is added to the scores is the mask times its factor. The mask
// is [sequences, heads, rows, keys], where 1 stands for all but keys, or [tokens, keys], which has
// a row for each query. `causal`: the last query sees all keys, each before it one fewer.

struct BoostSequence {
  Tensor query, key, value, out;  // [1, heads, rows, width]
  Tensor blocks;                  // its row of the table
  Tensor bias;                    // broadcasts to the scores; may be undefined
  int64_t keys = 0;
};

// The lengths in argument `i`, which may not add up to more than `rows`.
std::vector<int64_t> ReadLengths(const Call& call, int i, int64_t rows) {
  std::vector<int64_t> lengths = call.Ints(i);
  int64_t total = 0;
  for (int64_t length : lengths) {
    total += length;
    if (length < 0 || total > rows) {
      call.RejectArg(i, "asks for other rows than the " + std::to_string(rows) + " that there are");
    }
  }
  return lengths;
}

// Says that the mask has too few elements in a dim.
[[noreturn]] void RejectMask(const Call& call, const Tensor& mask, const SequencePlace& place) {
  call.RejectArg(4, "has shape " + SizesText(mask.sizes()) + ", too small for " +
                        std::to_string(place.queries) + " queries and " +
                        std::to_string(place.keys) + " keys");
}

// The part of the mask for the scores of sequence `index`.
Tensor MaskOf(const Call& call, const Tensor& mask, const SequencePlace& place, int64_t index) {
  if (!mask.defined()) return mask;
  if (mask.size(-1) < place.keys) RejectMask(call, mask, place);
  const Tensor cut = mask.narrow(-1, 0, place.keys);
  if (mask.dim() == 2) {
    if (mask.size(0) < place.first_query + place.queries) RejectMask(call, mask, place);
    return cut.narrow(0, place.first_query, place.queries);
  }
  if (mask.size(0) != 1 && mask.size(0) <= index) call.RejectArg(4, "lacks a sequence");
  if (mask.size(2) != 1 && mask.size(2) < place.queries) RejectMask(call, mask, place);
  const Tensor own = mask.size(0) == 1 ? cut : cut.narrow(0, index, 1);
  return mask.size(2) == 1 ? own : own.narrow(2, 0, place.queries);
}

Tensor ReadMask(const Call& call, int64_t heads) {
  if (call.IsAbsent(4)) return {};
  Tensor mask = call.View(4);
  ExpectFloats(call, 4, mask);
  if (mask.dim() == 4 ? mask.size(1) != 1 && mask.size(1) != heads : mask.dim() != 2) {
    call.RejectArg(4, "has shape " + SizesText(mask.sizes()) + ", which is no mask of " +
                          std::to_string(heads) + " heads");
  }
  return mask;
}

// Heads first, and one batch.
Tensor HeadsFirst(const Tensor& rows) { return rows.transpose(0, 1).unsqueeze(0); }

// The first `count` rows of a cache in these blocks. A program that captures gives lengths which no
// table has, and updates them before the task runs; so they are looked at then.
Tensor GatherRows(const Tensor& cache, const Tensor& blocks, int64_t count) {
  const int64_t used = (count + cache.size(1) - 1) / cache.size(1);
  TORCH_CHECK(used <= blocks.size(0), "kvSeqLen asks for ", count, " rows of keys in blocks of ",
              cache.size(1), ", and the table has ", blocks.size(0), " blocks for a sequence");
  const Tensor order = blocks.narrow(0, 0, used).to(at::kLong);
  return HeadsFirst(cache.index_select(0, order).flatten(0, 1).narrow(0, 0, count));
}

// Keys and values fit the queries and each other.
void ExpectBoostKeys(const Call& call, const Tensor& query, const Tensor& key, const Tensor& value,
                     int64_t rank) {
  for (int i : {1, 2}) {
    call.ExpectRank(i, call.View(i), rank);
    ExpectQueryDtype(call, i, call.View(i), query);
  }
  const int64_t heads = key.size(-2);
  if (heads < 1 || query.size(1) % heads != 0) {
    call.RejectArg(1,
                   "has " + std::to_string(heads) + " heads, which do not divide those of query");
  }
  if (key.size(-1) != query.size(2)) call.RejectArg(1, "has another width than query");
  if (value.sizes().slice(0, rank - 1) != key.sizes().slice(0, rank - 1)) {
    call.RejectArg(2, "has other rows than key");
  }
}

std::unique_ptr<Kernel> BindBoostAttention(const Call& call) {
  const Tensor query = call.View(0), key = call.View(1), value = call.View(2);
  call.ExpectRank(0, query, 3);
  ExpectFloats(call, 0, query);
  const bool paged = !call.IsNull(3);  // a table without rows is one of no sequences
  ExpectBoostKeys(call, query, key, value, paged ? 4 : 3);
  Tensor table;
  if (paged) {
    table = call.View(3);
    call.ExpectRank(3, table, 2);
    if (table.scalar_type() != at::kInt) call.RejectArg(3, "is not int32");
  }
  const Tensor out = call.Out(10);
  call.ExpectSizes(10, out, {query.size(0), query.size(1), value.size(-1)});
  const Tensor mask = ReadMask(call, query.size(1));
  const std::vector<int64_t> lengths = ReadLengths(call, 5, query.size(0));
  const std::vector<int64_t> key_lengths = paged ? call.Ints(6) : ReadLengths(call, 6, key.size(0));
  if (lengths.size() != key_lengths.size()) {
    call.RejectArg(6, "has another number of sequences than seqLen");
  }
  if (paged && table.size(0) < static_cast<int64_t>(lengths.size())) {
    call.RejectArg(3, "has fewer rows than sequences");
  }
  std::vector<BoostSequence> sequences;
  for (const SequencePlace& place : PlaceSequences(lengths, key_lengths, /*packed=*/true)) {
    const auto index = static_cast<int64_t>(sequences.size());
    BoostSequence one;
    one.keys = place.keys;
    one.query = place.Queries(HeadsFirst(query));
    one.out = place.Queries(HeadsFirst(out));
    one.bias = MaskOf(call, mask, place, index);
    if (paged) {
      if (place.keys < 0) call.RejectArg(6, "is negative");
      one.blocks = table[index];
    } else {
      one.key = place.Keys(HeadsFirst(key));
      one.value = place.Keys(HeadsFirst(value));
    }
    sequences.push_back(one);
  }
  const double scale = call.Real(7), factor = call.Real(8);
  const bool causal = call.Bool(9);
  return MakeKernel([=] {
    for (const BoostSequence& one : sequences) {
      AttentionTerms terms;
      terms.scale = scale;
      if (one.bias.defined()) terms.bias = one.bias.to(at::kFloat) * factor;
      if (causal) {
        ScoreMask order;
        order.band = true;
        order.corner = ScoreMask::Corner::kBottomRight;
        order.before = std::numeric_limits<int32_t>::max();
        terms.left_out = order.LeftOut(one.query.size(2), one.keys);
      }
      const bool gathers = one.blocks.defined();  // device memory: read when the task runs
      const Tensor seen = gathers ? GatherRows(key, one.blocks, one.keys) : one.key;
      const Tensor taken = gathers ? GatherRows(value, one.blocks, one.keys) : one.value;
      one.out.copy_(Attend(one.query, seen, taken, terms).out);
    }
  });
}

// --- (token [tokens, experts], groupNum, k, n, out): a group's score is the sum of its n best
// experts. The experts of all groups but the k best become 0; among equal groups the first wins.
std::unique_ptr<Kernel> BindGroupTopk(const Call& call) {
  const Tensor token = call.View(0);
  ExpectFloats(call, 0, token);
  call.ExpectRank(0, token, 2);
  const int64_t groups = call.Int(1), k = call.Int(2), n = call.Int(3), experts = token.size(1);
  if (groups < 1 || experts % groups != 0) {
    call.RejectArg(1, "does not divide the number of experts");
  }
  if (k < 1 || k > groups) call.RejectArg(2, "must be between 1 and groupNum");
  if (n < 1 || n > experts / groups) call.RejectArg(3, "must be between 1 and a group's experts");
  return BindWhole(call, 4, token.sizes(), [=] {
    const Tensor apart = token.unflatten(1, {groups, experts / groups});
    const Tensor score = std::get<0>(apart.to(at::kFloat).topk(n)).sum(-1);
    const Tensor order = std::get<1>(at::sort(score, /*stable=*/c10::optional<bool>(true),
                                              /*dim=*/-1, /*descending=*/true));
    const Tensor left_out = at::ones(score.sizes(), at::TensorOptions(at::kBool))
                                .scatter(1, order.narrow(1, 0, k), false);
    return apart.masked_fill(left_out.unsqueeze(-1), 0).flatten(1);
  });
}

// --- (x, scale, offset?, out): round(x / scale) + offset, held to the range of the output. The
// quotient of halves is a half; that of bfloat16 is float32.
std::unique_ptr<Kernel> BindQuantPerChannel(const Call& call) {
  const Tensor x = call.View(0), scale = call.View(1);
  const Tensor offset = call.IsAbsent(2) ? Tensor() : call.View(2);
  ExpectFloats(call, 0, x);
  ExpectQueryDtype(call, 1, scale, x);
  for (int i : {1, 2}) {
    if (call.IsAbsent(i)) continue;
    if (call.Broadcast({x.sizes(), call.View(i).sizes()}) != x.sizes().vec()) {
      call.RejectArg(i, "does not broadcast to x");
    }
  }
  const IntegerRange range = RangeOf(call, 3, call.View(3));
  return BindWhole(call, 3, x.sizes(), [=] {
    const Tensor steps = x.to(at::kFloat) / scale.to(at::kFloat);
    const bool halves = x.scalar_type() == at::kHalf;
    const Tensor whole = (halves ? steps.to(at::kHalf).to(at::kFloat) : steps).round();
    return (offset.defined() ? whole + offset : whole).clamp(range.low, range.high);
  });
}

}  // namespace

KernelRows TransformerBoostRows() {
  return {
      {"aclnnAtbGroupTopk", BindGroupTopk},
      {"aclnnAtbPagedAttention", BindBoostAttention},
      {"aclnnAtbQuantPerChannel", BindQuantPerChannel},
      {"aclnnAtbSelfAttention", BindBoostAttention},
  };
}

}  // namespace acltape::opapi
