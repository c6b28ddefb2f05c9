// Tokens that go to the ranks of their experts: each rank first tells the others how many, then the
// tokens go. A rank has what it got in the order of its experts, then of the ranks that sent it,
// then of their tokens. Where a device leaves memory unwritten there are zeros.
#include <ATen/ATen.h>

#include <memory>
#include <string>

#include "runtime/opapi/engine/kernel_table.h"
#include "runtime/opapi/kernels/expect_dtypes.h"
#include "runtime/opapi/kernels/expert_ranks.h"
#include "runtime/opapi/kernels/quantize.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

// The positions of the arguments in a version of the operator; -1: none. All have (x, expertIds,
// scales?, xActiveMask?, expertScales?, ..., groupEp, ...) and seven outputs at the end.
struct DispatchArguments {
  int group, others, out;
  std::vector<int> absent;
};
const DispatchArguments kDispatch = {5, -1, 18, {}};
const DispatchArguments kDispatchV2 = {5, -1, 19, {}};
const DispatchArguments kDispatchV3 = {6, 20, 23, {5}};
const DispatchArguments kDispatchV4 = {7, 21, 24, {5, 6}};

// The numbers that follow the bytes of each token. Combining needs the last two.
enum Beside { kScale, kWeight, kToken, kChoice, kBeside };
constexpr int64_t kBesideBytes = kBeside * static_cast<int64_t>(sizeof(int32_t));

// Elements of the tensor for it that a version after the first one has for each token.
constexpr int64_t kInfoElements = 128;

struct Dispatch {
  ExpertRanks where;
  Tensor x;
  Choices choices;
  Tensor smooth, weights;  // each may be undefined
  bool quantises = false, sums = false, first = false;
  Tensor tokens, scales, info, token_counts, recv_counts, tp_counts, out_weights;

  int64_t token_bytes() const { return tokens.size(1) * tokens.element_size(); }
  int64_t row_bytes() const { return token_bytes() + kBesideBytes; }
};

// Data that one step of a run leaves for the next ones.
struct DispatchRun {
  std::vector<Sent> sent;
  Tensor told, heard;  // [ranks, experts of a rank]: tokens that go, that come
  std::unique_ptr<RowExchange> rows;
  Tensor out, in;
};

Tensor Numbers(const std::vector<Sent>& sent, int64_t Sent::*which) {
  const Tensor numbers = at::empty({static_cast<int64_t>(sent.size())}, at::kLong);
  auto* to = numbers.data_ptr<int64_t>();
  for (const Sent& one : sent) *to++ = one.*which;
  return numbers;
}

// The rows that are sent: bytes of the token, then the numbers beside it.
Tensor PackRows(const Dispatch& d, const std::vector<Sent>& sent) {
  const Tensor token = Numbers(sent, &Sent::token), choice = Numbers(sent, &Sent::choice);
  const auto count = static_cast<int64_t>(sent.size());
  Tensor rows = d.x.index_select(0, token);
  Tensor scale = at::zeros({count}, at::kFloat), weight = at::zeros({count}, at::kFloat);
  if (d.quantises) {
    rows = rows.to(at::kFloat);
    if (d.smooth.defined()) {
      // Shared experts come first among the factors.
      const int64_t k = d.choices.ids.size(1);
      const Tensor factor = at::empty({count}, at::kLong);
      for (int64_t n = 0; n < count; ++n) {
        const Sent& one = sent[n];
        const int64_t routed =
            d.where.shared + (one.rank - d.where.shared_ranks) * d.where.routed_each() + one.expert;
        factor.data_ptr<int64_t>()[n] = one.choice >= k ? one.choice - k : routed;
      }
      rows = rows * d.smooth.index_select(0, factor);
    }
    const ScaledRows scaled = ScaleRows(rows);
    rows = scaled.values.to(at::kChar);
    scale = scaled.scale;
  }
  if (d.weights.defined()) {
    const Tensor each =
        at::cat({d.weights, at::ones({d.x.size(0), d.where.shared}, at::kFloat)}, 1);
    weight = each.flatten().index_select(0, token * each.size(1) + choice);
  }
  const Tensor beside =
      at::stack({scale.contiguous().view(at::kInt), weight.contiguous().view(at::kInt),
                 token.to(at::kInt), choice.to(at::kInt)},
                1);
  return at::cat({rows.contiguous().view(at::kByte), beside.view(at::kByte)}, 1).contiguous();
}

SoftExchange SendCounts(const Dispatch& d, DispatchRun* run) {
  run->sent = SentTokens(d.where, d.choices);
  run->told = at::zeros({d.where.ranks, d.where.routed_each()}, at::kLong);
  run->heard = at::empty_like(run->told);
  auto counts = run->told.accessor<int64_t, 2>();
  for (const Sent& one : run->sent) ++counts[one.rank][one.expert];
  return ExchangeOf(SOFT_ALL_TO_ALL, d.where.routed_each(), run->told, run->heard);
}

SoftExchange SendTokens(const Dispatch& d, DispatchRun* run) {
  const Tensor from = run->heard.sum(1);
  const std::vector<int64_t> come(from.data_ptr<int64_t>(),
                                  from.data_ptr<int64_t>() + d.where.ranks);
  const int64_t count = from.sum().item<int64_t>();
  TORCH_CHECK(count <= d.tokens.size(0), count, " tokens come to this rank, and there is room for ",
              d.tokens.size(0));
  run->out = PackRows(d, run->sent);
  run->in = at::empty({count, d.row_bytes()}, at::kByte);
  run->rows =
      std::make_unique<RowExchange>(CountByRank(run->sent, d.where.ranks), come, d.row_bytes());
  return run->rows->Of(run->out, run->in);
}

// Writes the beginning of a tensor; zeros follow.
void WriteFirst(const Tensor& out, const Tensor& first) {
  if (!out.defined()) return;
  const int64_t count = first.size(0);
  if (count > 0) out.narrow(0, 0, count).copy_(first);
  if (out.size(0) > count) out.narrow(0, count, out.size(0) - count).zero_();
}

void WriteInfo(const Dispatch& d, const DispatchRun& run, const Tensor& ranks,
               const Tensor& beside) {
  if (!d.first) {
    const Tensor told =
        at::stack({ranks.to(at::kInt), beside.select(1, kToken), beside.select(1, kChoice)}, 1);
    static_assert(kTold == 3);
    WriteFirst(d.info, told.flatten());
    return;
  }
  // For each choice of this rank's tokens, its place among those that it sends to the expert.
  const int64_t k = d.choices.ids.size(1);
  const Tensor index = at::full({d.x.size(0) * k}, -1, at::kInt);
  const std::vector<int64_t> places = PlacesAtExperts(run.sent);
  for (size_t n = 0; n < places.size(); ++n) {
    const Sent& one = run.sent[n];
    if (one.choice >= k) continue;
    index.data_ptr<int32_t>()[one.token * k + one.choice] = static_cast<int32_t>(places[n]);
  }
  d.info.copy_(index);
}

void WriteTokens(const Dispatch& d, DispatchRun* run) {
  const int64_t here = d.where.here(), ranks = d.where.ranks;
  // Rows lie by rank and expert, and become ordered by expert and rank.
  const Tensor counts = run->heard.narrow(1, 0, here).contiguous();
  const Tensor begins = (counts.flatten().cumsum(0) - counts.flatten()).view({ranks, here});
  const Tensor ordered = counts.t().contiguous(), ends = ordered.flatten().cumsum(0);
  std::vector<Tensor> order = {at::empty({0}, at::kLong)}, from = {at::empty({0}, at::kLong)};
  for (int64_t expert = 0; expert < here; ++expert) {
    for (int64_t rank = 0; rank < ranks; ++rank) {
      const int64_t count = counts[rank][expert].item<int64_t>();
      const int64_t begin = begins[rank][expert].item<int64_t>();
      order.push_back(at::arange(begin, begin + count, at::kLong));
      from.push_back(at::full({count}, rank, at::kLong));
    }
  }
  const Tensor rows = run->in.index_select(0, at::cat(order));
  const Tensor beside = BytesAs(rows, d.token_bytes(), kBesideBytes, at::kInt);
  WriteFirst(d.tokens, BytesAs(rows, 0, d.token_bytes(), d.tokens.scalar_type()));
  WriteFirst(d.scales, beside.select(1, kScale).contiguous().view(at::kFloat));
  WriteFirst(d.out_weights, beside.select(1, kWeight).contiguous().view(at::kFloat));
  WriteInfo(d, *run, at::cat(from), beside);
  const Tensor each = ordered.sum(1);
  d.token_counts.copy_(d.sums ? each.cumsum(0) : each);
  WriteFirst(d.recv_counts, ends);
  if (d.tp_counts.defined()) d.tp_counts.zero_();
  *run = DispatchRun();
}

// The output at `i`, or none if it has no elements.
Tensor ReadOutput(const Call& call, int i, at::ScalarType dtype) {
  if (call.IsAbsent(i)) return {};
  const Tensor out = call.Out(i);
  ExpectDtypes(call, i, out, {dtype});
  return out;
}

// Rejects the call unless the output at `i` has room for so many.
void ExpectRoom(const Call& call, int i, const Tensor& out, int64_t least) {
  const int64_t room = out.defined() && out.dim() > 0 ? out.size(0) : 0;
  if (room < least) {
    call.RejectArg(i, "has room for " + std::to_string(room) + ", and up to " +
                          std::to_string(least) + " may come");
  }
}

// The tokens that may come to this rank.
int64_t MostTokens(const ExpertRanks& where, int64_t all_tokens, int64_t k) {
  if (!where.has_shared()) return all_tokens * std::min(where.here(), k);
  const int64_t group = where.shared_ranks / where.shared;
  return all_tokens / where.ranks * ((where.ranks + group - 1) / group);
}

void ReadInputs(const Call& call, const DispatchArguments& at, Dispatch* d) {
  call.ExpectAbsent(at.absent);
  d->x = call.View(0);
  ExpectDtypes(call, 0, d->x, {at::kHalf, at::kBFloat16});
  call.ExpectRank(0, d->x, 2);
  d->choices = ReadChoices(call, 1, 3);
  if (d->choices.ids.size(0) != d->x.size(0)) {
    call.RejectArg(1, "has another number of tokens than x");
  }
  const int64_t mode = call.Int(at.group + 10);
  if (mode != 0 && mode != 2) {
    call.RejectArg(at.group + 10, "is " + std::to_string(mode) + ", expected 0 or 2");
  }
  d->quantises = mode == 2;
  if (!call.IsAbsent(2)) {
    if (!d->quantises) call.RejectArg(2, "is given, and quantMode is 0");
    d->smooth = call.View(2);
    ExpectDtypes(call, 2, d->smooth, {at::kFloat});
    call.ExpectSizes(2, d->smooth, {d->where.shared + d->where.experts, d->x.size(1)});
  }
  if (!call.IsAbsent(4)) {
    d->weights = call.View(4);
    ExpectDtypes(call, 4, d->weights, {at::kFloat});
    call.ExpectSizes(4, d->weights, d->choices.ids.sizes());
  }
  const int64_t type = call.Int(at.group + 12);
  if (type != 0 && type != 1) {
    call.RejectArg(at.group + 12, "is " + std::to_string(type) + ", expected 0 or 1");
  }
  d->sums = type == 0;
}

void ReadOutputs(const Call& call, const DispatchArguments& at, Dispatch* d) {
  const int64_t tokens = d->x.size(0), k = d->choices.ids.size(1);
  const int64_t most =
      MostTokens(d->where, ReadAllTokens(call, at.group + 11, tokens, d->where), k);
  int i = at.out;
  d->tokens = call.Out(i);
  ExpectDtypes(call, i, d->tokens, {d->quantises ? at::kChar : d->x.scalar_type()});
  call.ExpectRank(i, d->tokens, 2);
  if (d->tokens.size(1) != d->x.size(1)) call.RejectArg(i, "has another width than x");
  ExpectRoom(call, i, d->tokens, most);
  d->scales = ReadOutput(call, ++i, at::kFloat);
  if (d->quantises) ExpectRoom(call, i, d->scales, most);
  d->info = call.Out(++i);
  ExpectDtypes(call, i, d->info, {at::kInt});
  if (d->first) {
    call.ExpectSizes(i, d->info, {tokens * k});
  } else {
    ExpectRoom(call, i, d->info, most * kInfoElements);
  }
  d->token_counts = call.Out(++i);
  ExpectDtypes(call, i, d->token_counts, {at::kLong});
  call.ExpectSizes(i, d->token_counts, {d->where.here()});
  d->recv_counts = ReadOutput(call, ++i, at::kInt);
  ExpectRoom(call, i, d->recv_counts, d->where.ranks * d->where.here());
  d->tp_counts = ReadOutput(call, ++i, at::kInt);
  d->out_weights = ReadOutput(call, ++i, at::kFloat);
  if (d->weights.defined()) ExpectRoom(call, i, d->out_weights, most);
}

std::unique_ptr<Kernel> BindDispatch(const Call& call, const DispatchArguments& at, bool first) {
  Group group(call, at.group);
  Dispatch d;
  d.first = first;
  d.where = ReadExpertRanks(call, at.group, at.others, group);
  ReadInputs(call, at, &d);
  ReadOutputs(call, at, &d);
  const auto run = std::make_shared<DispatchRun>();
  return MakeGroupKernel(std::move(group),
                         {[d, run] { return SendCounts(d, run.get()); },
                          [d, run] { return SendTokens(d, run.get()); }},
                         [d, run] { WriteTokens(d, run.get()); });
}

}  // namespace

KernelRows DispatchExpertsRows() {
  constexpr Widen kNever = Widen::kNever;
  return {
      {"aclnnMoeDistributeDispatch",
       [](const Call& call) { return BindDispatch(call, kDispatch, true); },
       kNever,
       {2, 4, 19, 24}},
      {"aclnnMoeDistributeDispatchV2",
       [](const Call& call) { return BindDispatch(call, kDispatchV2, false); },
       kNever,
       {18, 20, 25}},
      {"aclnnMoeDistributeDispatchV3",
       [](const Call& call) { return BindDispatch(call, kDispatchV3, false); },
       kNever,
       {19, 24, 29}},
      {"aclnnMoeDistributeDispatchV4",
       [](const Call& call) { return BindDispatch(call, kDispatchV4, false); },
       kNever,
       {20, 25, 30}},
  };
}

}  // namespace acltape::opapi
