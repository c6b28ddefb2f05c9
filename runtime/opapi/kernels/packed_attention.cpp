#include "runtime/opapi/kernels/packed_attention.h"

#include "runtime/opapi/engine/target.h"
#include "runtime/opapi/kernels/attention.h"
#include "runtime/opapi/kernels/expect_dtypes.h"
#include "runtime/opapi/kernels/library_attention.h"
#include "runtime/opapi/kernels/packed_statistics.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

// The positions of the arguments that both directions have, in a version of an operator; -1: none.
struct PackedArguments {
  std::vector<int> absent;  // the soft device lacks them: biases, dropout, padding
  int key, value, mask, lengths, key_lengths, scale, keep, pre, next, heads, layout, mode, pse_type;
  int outputs;  // the first one
  // Further columns of the queries, and after the keys those of the keys.
  int query_rope = -1;
  bool needs_rope = false;
  int sink = -1;
  int order = -1;  // the layout of the statistics

  int key_rope() const { return key + 1; }
  // The first of the backward operator's inputs of each kind, and its outputs.
  int gradient() const { return value + 1; }
  int maximum() const { return mask + 1; }
  int attended() const { return mask + 4; }
  bool splits() const { return query_rope >= 0; }
  int query_out() const { return outputs; }
  int key_out() const { return outputs + (splits() ? 2 : 1); }
  int value_out() const { return outputs + (splits() ? 4 : 2); }
  int sink_out() const { return outputs + 6; }
};

const PackedArguments kVarLen = {{3, 4, 5}, 1, 2, 6, 8, 9, 10, 11, 12, 13, 14, 15, 17, -1, 18};
const PackedArguments kVarLenV2 = {{3, 4, 5}, 1, 2, 6, 8, 9, 12, 13, 14, 15, 16, 17, 19, 20, 21};
const PackedArguments kVarLenV3 = {{5, 6, 7}, 2,  4,  8,  10, 11, 14, 15,  16,
                                   17,        18, 19, 21, 22, 23, 1,  true};
const PackedArguments kVarLenV4 = {{3, 4, 5}, 1,  2,  6,  8,  9,  10,    11, 12, 13,
                                   14,        15, 17, -1, 19, -1, false, -1, 18};
const PackedArguments kVarLenV5 = {{5, 6, 7}, 2,  4,  8,  11, 12, 15,    16, 17, 18,
                                   19,        20, 22, 23, 25, 1,  false, 9,  24};
const PackedArguments kUnpadding = {{4, 5, 6}, 1, 2, 7, 13, 14, 15, 16, 17, 18, 19, 20, 22, -1, 23};
const PackedArguments kUnpaddingV2 = {{4, 5, 6}, 1,  2,  7,  13, 14, 17, 18,
                                      19,        20, 21, 22, 24, 25, 26};
const PackedArguments kUnpaddingV3 = {{6, 7, 8}, 2,  4,  9,  15, 16, 19, 20,  21,
                                      22,        23, 24, 26, 27, 28, 1,  true};
const PackedArguments kUnpaddingV4 = {{4, 5, 6}, 1,  2,  7,  13, 14, 15,    16, 17, 18,
                                      19,        20, 22, -1, 23, -1, false, -1, 27};
const PackedArguments kUnpaddingV5 = {{6, 7, 8}, 2,  4,  9,  16, 17, 20,    21, 22, 23,
                                      24,        25, 27, 28, 30, 1,  false, 14, 29};

struct PackedSequence : SequencePlace {
  ScoreMask mask;
};

struct PackedCall {
  int64_t heads = 0;
  Tensor query, key, value;     // [1, heads, rows, width]
  Tensor query_rope, key_rope;  // further columns; may be undefined
  Tensor sink;                  // may be undefined
  StatisticOrder order = StatisticOrder::kHeadsOfSequence;
  std::vector<PackedSequence> sequences;
  double scale = 1;

  // Made anew in each run of the task, because it reads device memory.
  AttentionTerms Terms(const PackedSequence& one) const {
    AttentionTerms terms;
    terms.scale = scale;
    terms.left_out = one.mask.LeftOut(one.queries, one.keys);
    terms.sink = sink;
    return terms;
  }

  // The queries and the keys of one sequence, with all their columns.
  Tensor Queries(const PackedSequence& one) const {
    const Tensor own = one.Queries(query);
    return query_rope.defined() ? at::cat({own, one.Queries(query_rope)}, -1) : own;
  }
  Tensor Keys(const PackedSequence& one) const {
    const Tensor own = one.Keys(key);
    return key_rope.defined() ? at::cat({own, one.Keys(key_rope)}, -1) : own;
  }
};

// [rows, heads, width] as [1, heads, rows, width].
Tensor RowsAsHeads(const Call& call, int i, const Tensor& view) {
  call.ExpectRank(i, view, 3);
  return view.transpose(0, 1).unsqueeze(0);
}

// The running sums of lengths as lengths.
std::vector<int64_t> LengthsOfSums(const Call& call, int i, int64_t rows) {
  std::vector<int64_t> sums = call.Ints(i);
  if (sums.empty()) call.RejectArg(i, "must hold the running sums of the sequences' lengths");
  int64_t last = 0;
  for (int64_t& sum : sums) {
    if (sum < last) call.RejectArg(i, "is not ascending");
    const int64_t length = sum - last;
    last = sum;
    sum = length;
  }
  if (last > rows) call.RejectArg(i, "exceeds the tensor's " + std::to_string(rows) + " rows");
  return sums;
}

// A mask for the longest sequence, cut to one of them.
ScoreMask MaskOf(const Call& call, int i, ScoreMask mask, int64_t queries, int64_t keys) {
  if (!mask.mask.defined()) return mask;
  if (mask.mask.dim() != 2 || mask.mask.size(0) < queries || mask.mask.size(1) < keys) {
    call.RejectArg(i, "must be a matrix of the longest sequence's queries and keys");
  }
  mask.mask = mask.mask.narrow(0, 0, queries).narrow(1, 0, keys);
  return mask;
}

void ReadPackedRopes(const Call& call, const PackedArguments& at, PackedCall& packed) {
  if (at.query_rope < 0) return;
  const int parts[] = {at.query_rope, at.key_rope()};
  if (call.IsAbsent(parts[0]) && call.IsAbsent(parts[1]) && !at.needs_rope) return;
  for (int i : parts) {
    if (call.IsAbsent(i)) call.RejectArg(i, "is absent");
    ExpectDtypes(call, i, call.View(i), {at::kBFloat16});
  }
  ExpectDtypes(call, 0, packed.query, {at::kBFloat16});
  if (call.Int(at.pse_type) != 1) call.RejectArg(at.pse_type, "must be 1 beside queryRope");
  packed.query_rope = RowsAsHeads(call, parts[0], call.View(parts[0]));
  packed.key_rope = RowsAsHeads(call, parts[1], call.View(parts[1]));
  const int64_t width = packed.query_rope.size(3);
  if (width % 8 != 0 || width > packed.value.size(3)) {
    call.RejectArg(parts[0], "must have a width that is a multiple of 8, at most that of value");
  }
  call.ExpectSizes(parts[0], call.View(parts[0]), {packed.query.size(2), packed.heads, width});
  call.ExpectSizes(parts[1], call.View(parts[1]), {packed.key.size(2), packed.key.size(1), width});
}

void ReadPackedOrder(const Call& call, const PackedArguments& at, PackedCall& packed) {
  const std::string name = at.order < 0 ? "" : call.Text(at.order);
  if (name == "same_as_input") {
    packed.order = StatisticOrder::kLikeInput;
  } else if (!name.empty()) {
    call.RejectArg(at.order, "must be empty or \"same_as_input\"");
  }
}

PackedCall ReadPacked(const Call& call, const PackedArguments& at) {
  ExpectAbsent(call, at.absent);
  if (call.Text(at.layout) != "TND") call.RejectArg(at.layout, "must be \"TND\"");
  if (at.pse_type >= 0 && call.Int(at.pse_type) != 0 && call.Int(at.pse_type) != 1) {
    call.RejectArg(at.pse_type, "must be 0 or 1");
  }
  if (call.Real(at.keep) != 1)
    call.RejectArg(at.keep, "is not 1; the soft device has no dropout here");
  PackedCall packed;
  packed.heads = call.Int(at.heads);
  packed.scale = call.Real(at.scale);
  packed.query = RowsAsHeads(call, 0, call.View(0));
  ExpectFloats(call, 0, packed.query);
  if (packed.query.size(1) != packed.heads)
    call.RejectArg(at.heads, "is not query's number of heads");
  for (int i : {at.key, at.value}) ExpectQueryDtype(call, i, call.View(i), packed.query);
  packed.key = RowsAsHeads(call, at.key, call.View(at.key));
  packed.value = RowsAsHeads(call, at.value, call.View(at.value));
  ExpectKeys(call, packed.query, packed.key, packed.value, at.key);
  ReadPackedRopes(call, at, packed);
  ReadPackedOrder(call, at, packed);
  if (at.sink >= 0 && !call.IsAbsent(at.sink)) {
    packed.sink = call.View(at.sink);
    call.ExpectSizes(at.sink, packed.sink, {packed.heads});
    ExpectDtypes(call, at.sink, packed.sink, {at::kFloat});
  }

  const std::vector<int64_t> lengths = LengthsOfSums(call, at.lengths, packed.query.size(2));
  const std::vector<int64_t> key_lengths = LengthsOfSums(call, at.key_lengths, packed.key.size(2));
  if (lengths.size() != key_lengths.size()) {
    call.RejectArg(at.key_lengths, "has another number of sequences than actualSeqQLen");
  }
  const ScoreMask mask = ReadScoreMask(call, at.mask, at.pre, at.next, at.mode);
  for (const SequencePlace& place : PlaceSequences(lengths, key_lengths, /*packed=*/true)) {
    packed.sequences.push_back({place, MaskOf(call, at.mask, mask, place.queries, place.keys)});
  }
  return packed;
}

// The shape of a statistic says [rows, heads, 8]; one in the order of the heads may say
// [heads, rows, 8], too.
void ExpectStatistic(const Call& call, int i, const Tensor& view, const PackedCall& packed) {
  const int64_t rows = packed.query.size(2);
  ExpectDtypes(call, i, view, {at::kFloat});
  if (packed.order == StatisticOrder::kHeadsOfSequence && view.dim() == 3 &&
      view.size(0) == packed.heads) {
    return call.ExpectSizes(i, view, {packed.heads, rows, 8});
  }
  call.ExpectSizes(i, view, {rows, packed.heads, 8});
}

// (query, key, value, ..., softmaxMax, softmaxSum, softmaxOut, attentionOut). softmaxOut stays
// unwritten; rows after the last sequence are zeros.
std::unique_ptr<Kernel> BindPacked(const Call& call, const PackedArguments& at) {
  const PackedCall packed = ReadPacked(call, at);
  const Tensor maximum = call.Out(at.outputs), sum = call.Out(at.outputs + 1);
  ExpectStatistic(call, at.outputs, maximum, packed);
  ExpectStatistic(call, at.outputs + 1, sum, packed);
  const Tensor given = call.Out(at.outputs + 3);
  call.ExpectSizes(at.outputs + 3, given,
                   {packed.query.size(2), packed.heads, packed.value.size(3)});
  const Tensor out = RowsAsHeads(call, at.outputs + 3, given);
  return MakeKernel([=] {
    const int64_t rows = out.size(2);
    const PackedStatistic peaks = PackedStatistic::Empty(rows, packed.heads, packed.order);
    const PackedStatistic totals = PackedStatistic::Empty(rows, packed.heads, packed.order);
    Tensor(out).zero_();
    for (const PackedSequence& one : packed.sequences) {
      if (one.queries == 0) continue;
      const Tensor query = packed.Queries(one), key = packed.Keys(one);
      const Tensor value = one.Keys(packed.value);
      const AttentionTerms terms = packed.Terms(one);
      std::optional<AttentionResult> of_library;
      if (one.keys > 0) of_library = LibraryAttend(query, key, value, terms);
      const AttentionResult result = of_library ? *of_library : Attend(query, key, value, terms);
      one.Queries(out).copy_(result.out);
      const std::vector<int64_t> sizes = {1, packed.heads, one.queries, 8};
      peaks.Sequence(one.first_query, one.queries).copy_(result.maximum.expand(sizes));
      totals.Sequence(one.first_query, one.queries).copy_(result.sum.expand(sizes));
    }
    peaks.CopyTo(maximum);
    totals.CopyTo(sum);
  });
}

// Writes the gradient of the queries or keys with all their columns into those of its two parts.
void CopyColumns(const Tensor& gradient, const Tensor& own, const Tensor& rope) {
  const int64_t width = own.size(3);
  own.copy_(gradient.narrow(-1, 0, width));
  if (rope.defined()) rope.copy_(gradient.narrow(-1, width, rope.size(3)));
}

// The gradients that a backward operator writes, split into heads. Those of the further columns and
// of the sink may be undefined.
struct PackedGradients {
  Tensor query, query_rope, key, key_rope, value, sink;

  void Zero() const {
    for (const Tensor& one : {query, query_rope, key, key_rope, value}) {
      if (one.defined()) Tensor(one).zero_();
    }
  }
};

PackedGradients ReadGradients(const Call& call, const PackedArguments& at,
                              const PackedCall& packed) {
  const auto gradient = [&](int i, int of) {
    const Tensor view = call.Out(i);
    call.ExpectSizes(i, view, call.View(of).sizes());
    return RowsAsHeads(call, i, view);
  };
  PackedGradients gradients;
  gradients.query = gradient(at.query_out(), 0);
  gradients.key = gradient(at.key_out(), at.key);
  gradients.value = gradient(at.value_out(), at.value);
  if (packed.query_rope.defined()) {
    gradients.query_rope = gradient(at.query_out() + 1, at.query_rope);
    gradients.key_rope = gradient(at.key_out() + 1, at.key_rope());
  }
  if (packed.sink.defined()) {
    gradients.sink = call.Out(at.sink_out());
    call.ExpectSizes(at.sink_out(), gradients.sink, packed.sink.sizes());
  }
  return gradients;
}

// (query, key, value, dy, ..., softmaxMax, softmaxSum, softmaxIn?, attentionIn?, ..., dq, dk, dv,
// dpse), with further columns after the queries, the keys and their gradients in some versions.
// dpse stays unwritten: there is no bias.
std::unique_ptr<Kernel> BindPackedGrad(const Call& call, const PackedArguments& at) {
  const PackedCall packed = ReadPacked(call, at);
  const int dy_index = at.gradient(), out_index = at.attended();
  const Tensor dy = RowsAsHeads(call, dy_index, call.View(dy_index));
  call.ExpectSizes(dy_index, call.View(dy_index),
                   {packed.query.size(2), packed.heads, packed.value.size(3)});
  for (int i : {at.maximum(), at.maximum() + 1}) {
    if (call.IsAbsent(i)) call.RejectArg(i, "is absent; pass what the forward operator gave");
    ExpectStatistic(call, i, call.View(i), packed);
  }
  const Tensor maximum = call.View(at.maximum()), sum = call.View(at.maximum() + 1);
  Tensor attended;  // the library's operator wants it; a caller may leave it out
  if (!call.IsAbsent(out_index)) {
    call.ExpectSizes(out_index, call.View(out_index), call.View(dy_index).sizes());
    attended = RowsAsHeads(call, out_index, call.View(out_index));
  }
  const PackedGradients gradients = ReadGradients(call, at, packed);
  return MakeKernel([=] {
    const PackedStatistic peaks = PackedStatistic::Of(maximum, packed.heads, packed.order);
    const PackedStatistic totals = PackedStatistic::Of(sum, packed.heads, packed.order);
    gradients.Zero();
    Tensor of_sink;
    if (packed.sink.defined()) of_sink = at::zeros({packed.heads}, at::kFloat);
    for (const PackedSequence& one : packed.sequences) {
      if (one.queries == 0 || one.keys == 0) continue;
      const Tensor query = packed.Queries(one), key = packed.Keys(one);
      const Tensor value = one.Keys(packed.value), of_out = one.Queries(dy);
      const auto once = [&](const PackedStatistic& statistic) {
        return statistic.Sequence(one.first_query, one.queries).narrow(-1, 0, 1);
      };
      const Tensor peak = once(peaks), total = once(totals);
      const AttentionTerms terms = packed.Terms(one);
      std::optional<AttentionGradients> result;
      if (attended.defined()) {
        result = LibraryAttendBackward(of_out, query, key, value, one.Queries(attended), peak,
                                       total, terms);
      }
      if (!result) result = AttendBackward(of_out, query, key, value, peak, total, terms);
      const auto queries_of = [&](const Tensor& all) {
        return all.defined() ? one.Queries(all) : Tensor();
      };
      const auto keys_of = [&](const Tensor& all) {
        return all.defined() ? one.Keys(all) : Tensor();
      };
      CopyColumns(result->query, queries_of(gradients.query), queries_of(gradients.query_rope));
      CopyColumns(result->key, keys_of(gradients.key), keys_of(gradients.key_rope));
      one.Keys(gradients.value).copy_(result->value);
      if (of_sink.defined()) of_sink += result->sink;
    }
    if (of_sink.defined()) gradients.sink.copy_(of_sink);
  });
}

}  // namespace

KernelRows PackedAttentionRows() {
  const auto forward = [](const PackedArguments& at) {
    return [&at](const Call& call) { return BindPacked(call, at); };
  };
  const auto backward = [](const PackedArguments& at) {
    return [&at](const Call& call) { return BindPackedGrad(call, at); };
  };
  return {
      {"aclnnFlashAttentionVarLenScore", forward(kVarLen), Widen::kNever, {20}},
      {"aclnnFlashAttentionVarLenScoreV2", forward(kVarLenV2), Widen::kNever, {23}},
      {"aclnnFlashAttentionVarLenScoreV3", forward(kVarLenV3), Widen::kNever, {25}},
      {"aclnnFlashAttentionVarLenScoreV4", forward(kVarLenV4), Widen::kNever, {18, 21}},
      {"aclnnFlashAttentionVarLenScoreV5", forward(kVarLenV5), Widen::kNever, {24, 27}},
      {"aclnnFlashAttentionUnpaddingScoreGrad", backward(kUnpadding), Widen::kNever, {26}},
      {"aclnnFlashAttentionUnpaddingScoreGradV2", backward(kUnpaddingV2), Widen::kNever, {29}},
      {"aclnnFlashAttentionUnpaddingScoreGradV3", backward(kUnpaddingV3), Widen::kNever, {33}},
      {"aclnnFlashAttentionUnpaddingScoreGradV4", backward(kUnpaddingV4), Widen::kNever, {26, 27}},
      {"aclnnFlashAttentionUnpaddingScoreGradV5",
       backward(kUnpaddingV5),
       Widen::kNever,
       {29, 31, 33, 35, 36}},
  };
}

}  // namespace acltape::opapi
