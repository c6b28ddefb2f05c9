#include "runtime/opapi/kernels/packed_attention.h"

#include "runtime/opapi/engine/target.h"
#include "runtime/opapi/kernels/attention.h"
#include "runtime/opapi/kernels/expect_dtypes.h"
#include "runtime/opapi/kernels/library_attention.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

// The positions of the arguments that both directions have, in a version of an operator; -1: none.
struct PackedArguments {
  std::vector<int>
      absent;  // the soft device lacks them: biases, dropout, padding, prefixes, starts
  int key, value, mask, lengths, key_lengths, scale, keep, pre, next, heads, layout, mode, pse_type;
  int outputs;  // the first one
};

const PackedArguments kVarLen = {{3, 4, 5, 7}, 1, 2, 6, 8, 9, 10, 11, 12, 13, 14, 15, 17, -1, 18};
const PackedArguments kVarLenV2 = {
    {3, 4, 5, 7, 10, 11}, 1, 2, 6, 8, 9, 12, 13, 14, 15, 16, 17, 19, 20, 21};
const PackedArguments kUnpadding = {
    {4, 5, 6, 12}, 1, 2, 7, 13, 14, 15, 16, 17, 18, 19, 20, 22, -1, 23};
const PackedArguments kUnpaddingV2 = {
    {4, 5, 6, 12, 15, 16}, 1, 2, 7, 13, 14, 17, 18, 19, 20, 21, 22, 24, 25, 26};

struct PackedSequence : SequencePlace {
  ScoreMask mask;
};

struct PackedCall {
  int64_t heads = 0;
  Tensor query, key, value;  // [1, heads, rows, width]
  std::vector<PackedSequence> sequences;
  double scale = 1;

  // Made anew in each run of the task, because it reads device memory.
  AttentionTerms Terms(const PackedSequence& one) const {
    AttentionTerms terms;
    terms.scale = scale;
    terms.left_out = one.mask.LeftOut(one.queries, one.keys);
    return terms;
  }

  // Each maximum and each sum is held 8 times: [rows, heads, 8].
  std::vector<int64_t> statistics() const { return {query.size(2), heads, 8}; }
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
  ExpectKeys(call, packed.query, packed.key, packed.value);

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

// A statistic of [rows, heads, 8] as [1, heads, rows, 8].
Tensor StatisticOf(const Call& call, int i, const Tensor& view, const PackedCall& packed) {
  call.ExpectSizes(i, view, packed.statistics());
  return RowsAsHeads(call, i, view);
}

// (query, key, value, ..., softmaxMax, softmaxSum, softmaxOut, attentionOut). softmaxOut stays
// unwritten; rows after the last sequence are zeros.
std::unique_ptr<Kernel> BindPacked(const Call& call, const PackedArguments& at) {
  const PackedCall packed = ReadPacked(call, at);
  const Tensor maximum = StatisticOf(call, at.outputs, call.Out(at.outputs), packed);
  const Tensor sum = StatisticOf(call, at.outputs + 1, call.Out(at.outputs + 1), packed);
  const Tensor given = call.Out(at.outputs + 3);
  call.ExpectSizes(at.outputs + 3, given,
                   {packed.query.size(2), packed.heads, packed.value.size(3)});
  const Tensor out = RowsAsHeads(call, at.outputs + 3, given);
  return MakeKernel([=] {
    for (const Tensor& all : {out, maximum, sum}) Tensor(all).zero_();
    for (const PackedSequence& one : packed.sequences) {
      if (one.queries == 0) continue;
      const Tensor query = one.Queries(packed.query), key = one.Keys(packed.key);
      const Tensor value = one.Keys(packed.value);
      const AttentionTerms terms = packed.Terms(one);
      std::optional<AttentionResult> of_library;
      if (one.keys > 0) of_library = LibraryAttend(query, key, value, terms);
      const AttentionResult result = of_library ? *of_library : Attend(query, key, value, terms);
      one.Queries(out).copy_(result.out);
      one.Queries(maximum).copy_(result.maximum.expand({-1, -1, -1, 8}));
      one.Queries(sum).copy_(result.sum.expand({-1, -1, -1, 8}));
    }
  });
}

// (query, key, value, dy, ..., softmaxMax, softmaxSum, softmaxIn?, attentionIn?, ..., dq, dk, dv,
// dpse). dpse stays unwritten: there is no bias.
std::unique_ptr<Kernel> BindPackedGrad(const Call& call, const PackedArguments& at) {
  const PackedCall packed = ReadPacked(call, at);
  const Tensor dy = RowsAsHeads(call, 3, call.View(3));
  call.ExpectSizes(3, call.View(3), {packed.query.size(2), packed.heads, packed.value.size(3)});
  for (int i : {8, 9}) {
    if (call.IsAbsent(i)) call.RejectArg(i, "is absent; pass what the forward operator gave");
  }
  const Tensor maximum = StatisticOf(call, 8, call.View(8), packed).narrow(-1, 0, 1);
  const Tensor sum = StatisticOf(call, 9, call.View(9), packed).narrow(-1, 0, 1);
  Tensor attended;  // the library's operator wants it; a caller may leave it out
  if (!call.IsAbsent(11)) {
    call.ExpectSizes(11, call.View(11), call.View(3).sizes());
    attended = RowsAsHeads(call, 11, call.View(11));
  }
  const auto gradient = [&](int offset, int of) {
    const Tensor view = call.Out(at.outputs + offset);
    call.ExpectSizes(at.outputs + offset, view, call.View(of).sizes());
    return RowsAsHeads(call, at.outputs + offset, view);
  };
  const Tensor dq = gradient(0, 0), dk = gradient(1, at.key), dv = gradient(2, at.value);
  return MakeKernel([=] {
    for (const Tensor& all : {dq, dk, dv}) Tensor(all).zero_();
    for (const PackedSequence& one : packed.sequences) {
      if (one.queries == 0 || one.keys == 0) continue;
      const Tensor query = one.Queries(packed.query), key = one.Keys(packed.key);
      const Tensor value = one.Keys(packed.value), of_out = one.Queries(dy);
      const Tensor peak = one.Queries(maximum), total = one.Queries(sum);
      const AttentionTerms terms = packed.Terms(one);
      std::optional<AttentionGradients> result;
      if (attended.defined()) {
        result = LibraryAttendBackward(of_out, query, key, value, one.Queries(attended), peak,
                                       total, terms);
      }
      if (!result) result = AttendBackward(of_out, query, key, value, peak, total, terms);
      one.Queries(dq).copy_(result->query);
      one.Keys(dk).copy_(result->key);
      one.Keys(dv).copy_(result->value);
    }
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
      {"aclnnFlashAttentionUnpaddingScoreGrad", backward(kUnpadding), Widen::kNever, {26}},
      {"aclnnFlashAttentionUnpaddingScoreGradV2", backward(kUnpaddingV2), Widen::kNever, {29}},
  };
}

}  // namespace acltape::opapi
