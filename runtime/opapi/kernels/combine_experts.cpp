// The way back from the experts (dispatch_experts.cpp): each rank gets the results for its tokens
// and sums them with the weights of its choices, in float32. Rows of tokens that take no part are
// zeros, where a device leaves them unwritten.
#include <ATen/ATen.h>

#include <memory>
#include <string>

#include "runtime/opapi/engine/kernel_table.h"
#include "runtime/opapi/kernels/expect_dtypes.h"
#include "runtime/opapi/kernels/expert_ranks.h"
#include "runtime/opapi/kernels/row_norm.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

// The positions of the arguments in a version of the operator; -1: none. All have (expandX,
// expertIds, expandIdx or assistInfoForCombine, epSendCounts, expertScales) first.
struct CombineArguments {
  int mask, shared_x, original, group, others, out;
  int residual = -1, epsilon = -1;  // only versions with a norm have these
  std::vector<int> absent;
};
const CombineArguments kCombine = {6, -1, -1, 11, -1, 25, -1, -1, {7, 8, 9}};
const CombineArguments kCombineV2 = {6, 11, -1, 12, -1, 27, -1, -1, {7, 8, 9}};
const CombineArguments kCombineV3 = {6, 11, 13, 17, 32, 35, -1, -1, {7, 8, 9, 12}};
const CombineArguments kCombineV4 = {6, 11, 13, 18, 33, 36, -1, -1, {7, 8, 9, 12, 17}};
const CombineArguments kCombineNorm = {8, 13, -1, 14, -1, 30, 5, 29, {9, 10, 11}};
const CombineArguments kCombineNormV2 = {8, 13, 15, 19, 35, 38, 5, 34, {9, 10, 11, 14}};

constexpr int64_t kPlaceBytes = 2 * static_cast<int64_t>(sizeof(int32_t));

struct Combine {
  ExpertRanks where;
  Tensor rows, info, counts, weights;
  Choices choices;
  // Each may be undefined.
  Tensor shared_x, original, alpha1, alpha2, constant;
  bool first = false;

  int64_t row_bytes() const { return rows.size(1) * rows.element_size(); }
};

struct CombineRun {
  std::vector<Sent> sent;  // by this rank, to the experts
  std::unique_ptr<RowExchange> exchange;
  Tensor out, in;
};

// The rows of this rank in the order in which they go back, and how many go to each rank. With
// `places`, the token and the choice of each.
struct Back {
  std::vector<int64_t> order, counts;
  std::vector<int32_t> places;
};

// The first version knows for each expert how many rows are of which rank.
Back BackByCounts(const Combine& c, const Tensor& ends) {
  Back back;
  const auto end = ends.accessor<int32_t, 1>();
  for (int64_t rank = 0; rank < c.where.ranks; ++rank) {
    const size_t before = back.order.size();
    for (int64_t expert = 0; expert < c.where.here(); ++expert) {
      const int64_t n = expert * c.where.ranks + rank;
      for (int64_t row = n == 0 ? 0 : end[n - 1]; row < end[n]; ++row) back.order.push_back(row);
    }
    back.counts.push_back(static_cast<int64_t>(back.order.size() - before));
  }
  return back;
}

// Later versions know for each row whose it is.
Back BackByRows(const Combine& c, int64_t total) {
  Back back;
  const Tensor told = c.info.narrow(0, 0, total * kTold).contiguous();
  const auto* each = told.data_ptr<int32_t>();
  for (int64_t rank = 0; rank < c.where.ranks; ++rank) {
    const size_t before = back.order.size();
    for (int64_t row = 0; row < total; ++row) {
      if (each[row * kTold] != rank) continue;
      back.order.push_back(row);
      back.places.insert(back.places.end(), {each[row * kTold + 1], each[row * kTold + 2]});
    }
    back.counts.push_back(static_cast<int64_t>(back.order.size() - before));
  }
  TORCH_CHECK(static_cast<int64_t>(back.order.size()) == total,
              "assistInfoForCombine names ranks that the group lacks");
  return back;
}

SoftExchange SendBack(const Combine& c, CombineRun* run) {
  const int64_t known = c.where.ranks * c.where.here();
  const Tensor ends = c.counts.narrow(0, 0, known).contiguous();
  int64_t last = 0;
  for (int64_t n = 0; n < known; ++n) {
    const int64_t end = ends[n].item<int32_t>();
    TORCH_CHECK(end >= last && end <= c.rows.size(0), "epSendCounts[", n, "] is ", end,
                ", which lies outside of ", last, " to ", c.rows.size(0));
    last = end;
  }
  const Back back = c.first ? BackByCounts(c, ends) : BackByRows(c, last);
  const Tensor order = at::tensor(at::ArrayRef<int64_t>(back.order), at::kLong);
  run->out = c.rows.index_select(0, order).contiguous().view(at::kByte);
  int64_t width = c.row_bytes();
  if (!c.first) {
    const Tensor places = at::tensor(at::ArrayRef<int32_t>(back.places), at::kInt).view({-1, 2});
    run->out = at::cat({run->out, places.view(at::kByte)}, 1).contiguous();
    width += kPlaceBytes;
  }
  run->sent = SentTokens(c.where, c.choices);
  run->in = at::empty({static_cast<int64_t>(run->sent.size()), width}, at::kByte);
  run->exchange =
      std::make_unique<RowExchange>(back.counts, CountByRank(run->sent, c.where.ranks), width);
  return run->exchange->Of(run->out, run->in);
}

// For each token and choice its row among those that came; -1: none.
Tensor RowsOfChoices(const Combine& c, const CombineRun& run) {
  const int64_t tokens = c.choices.ids.size(0), k = c.choices.ids.size(1);
  const Tensor rows = at::full({tokens, k + c.where.shared}, -1, at::kLong);
  auto row = rows.accessor<int64_t, 2>();
  if (!c.first) {
    const Tensor places = BytesAs(run.in, c.row_bytes(), kPlaceBytes, at::kInt);
    const auto place = places.accessor<int32_t, 2>();
    for (int64_t n = 0; n < places.size(0); ++n) {
      const int64_t token = place[n][0], choice = place[n][1];
      TORCH_CHECK(token >= 0 && token < tokens && choice >= 0 && choice < rows.size(1),
                  "a row comes back for token ", token, ", choice ", choice, ", which is none");
      row[token][choice] = n;
    }
    return rows;
  }
  const Tensor index = c.info.contiguous();
  const std::vector<int64_t> places = PlacesAtExperts(run.sent);
  const auto count = static_cast<int64_t>(run.sent.size());
  for (int64_t n = 0; n < count; ++n) {
    const Sent& one = run.sent[n];
    int64_t place = n;
    if (one.choice < k) {
      place += index.data_ptr<int32_t>()[one.token * k + one.choice] - places[n];
      TORCH_CHECK(place >= 0 && place < count && run.sent[place].rank == one.rank &&
                      run.sent[place].expert == one.expert,
                  "expandIdx[", one.token, ", ", one.choice, "] is no place at its expert");
    }
    row[one.token][one.choice] = place;
  }
  return rows;
}

// The sums of results with their weights; shared experts count as they are.
Tensor SumChoices(const Combine& c, const CombineRun& run) {
  const int64_t tokens = c.choices.ids.size(0), k = c.choices.ids.size(1);
  const int64_t width = c.rows.size(1);
  const Tensor rows = RowsOfChoices(c, run);
  const Tensor came = BytesAs(run.in, 0, c.row_bytes(), c.rows.scalar_type()).to(at::kFloat);
  const Tensor weights = at::cat({c.weights, at::ones({tokens, c.where.shared}, at::kFloat)}, 1);
  Tensor sum = at::zeros({tokens, width}, at::kFloat);
  for (int64_t choice = 0; choice < rows.size(1) && came.size(0) > 0; ++choice) {
    const Tensor row = rows.select(1, choice);
    const Tensor part = came.index_select(0, row.clamp_min(0)) * weights.narrow(1, choice, 1);
    sum += part.masked_fill(row.lt(0).unsqueeze(1), 0);
  }
  // Experts without a rank.
  Tensor mask = c.choices.mask.defined() ? c.choices.mask : at::ones({tokens}, at::kBool);
  if (mask.dim() == 1) mask = mask.unsqueeze(1).expand({tokens, k});
  const Tensor ids = c.choices.ids.to(at::kLong);
  const int64_t copies = c.where.experts + c.where.zeros, constants = copies + c.where.copies;
  if (c.original.defined()) {
    const Tensor original = c.original.to(at::kFloat);
    for (int64_t choice = 0; choice < k; ++choice) {
      const Tensor id = ids.select(1, choice), counts = mask.select(1, choice);
      Tensor part = original;
      if (c.where.constants > 0) {
        const Tensor which = (id - constants).clamp(0, c.where.constants - 1);
        const auto factor = [&](const Tensor& all) {
          return all.to(at::kFloat).index_select(0, which).unsqueeze(1);
        };
        const Tensor mixed = factor(c.alpha1) * original +
                             factor(c.alpha2) * c.constant.to(at::kFloat).index_select(0, which);
        part = at::where(id.ge(constants).unsqueeze(1), mixed, original);
      }
      const Tensor stays = counts.logical_and(id.ge(copies)).unsqueeze(1);
      sum += (part * weights.narrow(1, choice, 1)).masked_fill(stays.logical_not(), 0);
    }
  }
  if (c.shared_x.defined()) {
    const Tensor takes_part = mask.any(1, /*keepdim=*/true);
    sum += c.shared_x.to(at::kFloat).masked_fill(takes_part.logical_not(), 0);
  }
  return sum;
}

// A tensor of the tokens' dtype and sizes, or with dims more that have one element.
Tensor ReadTokens(const Call& call, int i, const Combine& c, bool is_out) {
  const Tensor tensor = is_out ? call.Out(i) : call.View(i);
  ExpectDtypes(call, i, tensor, {c.rows.scalar_type()});
  const int64_t tokens = c.choices.ids.size(0), width = c.rows.size(1);
  if (tensor.dim() < 2 || tensor.size(-1) != width || tensor.numel() != tokens * width) {
    call.RejectArg(
        i, "has shape " + SizesText(tensor.sizes()) + ", expected " + SizesText({tokens, width}));
  }
  return tensor.view({tokens, width});
}

void ReadExpertsWithoutRank(const Call& call, const CombineArguments& at, Combine* c) {
  if (at.original < 0) return;
  const ExpertRanks& where = c->where;
  if (where.copies > 0 || where.constants > 0)
    c->original = ReadTokens(call, at.original, *c, false);
  if (where.constants == 0) return;
  const auto read = [&](int i, at::IntArrayRef sizes) {
    const Tensor tensor = call.View(i);
    ExpectDtypes(call, i, tensor, {c->rows.scalar_type()});
    call.ExpectSizes(i, tensor, sizes);
    return tensor;
  };
  c->alpha1 = read(at.original + 1, {where.constants});
  c->alpha2 = read(at.original + 2, {where.constants});
  c->constant = read(at.original + 3, {where.constants, c->rows.size(1)});
}

// Position in the arguments after the group's name: (..., globalBs, outDtype, commQuantMode,
// groupListType).
Combine ReadCombine(const Call& call, const CombineArguments& at, const Group& group, bool first) {
  Combine c;
  c.first = first;
  c.where = ReadExpertRanks(call, at.group, at.others, group);
  call.ExpectAbsent(at.absent);
  for (int i : {at.group + 11, at.group + 12, at.group + 13}) {
    if (call.Int(i) != 0) {
      call.RejectArg(i,
                     "is " + std::to_string(call.Int(i)) + ", and the soft device knows 0 alone");
    }
  }
  c.rows = call.View(0);
  ExpectDtypes(call, 0, c.rows, {at::kHalf, at::kBFloat16});
  call.ExpectRank(0, c.rows, 2);
  c.choices = ReadChoices(call, 1, at.mask);
  const int64_t tokens = c.choices.ids.size(0), k = c.choices.ids.size(1);
  ReadAllTokens(call, at.group + 10, tokens, c.where);
  c.info = call.View(2);
  ExpectDtypes(call, 2, c.info, {at::kInt});
  if (first) {
    if (c.info.numel() != tokens * k) {
      call.RejectArg(2, "has " + std::to_string(c.info.numel()) + " elements, expected " +
                            std::to_string(tokens * k));
    }
    c.info = c.info.flatten();
  } else {
    call.ExpectRank(2, c.info, 1);
    if (c.info.size(0) < c.rows.size(0) * kTold) {
      call.RejectArg(2, "is not the result of a dispatch to as many rows as expandX has");
    }
  }
  c.counts = call.View(3);
  ExpectDtypes(call, 3, c.counts, {at::kInt});
  call.ExpectRank(3, c.counts, 1);
  if (c.counts.size(0) < c.where.ranks * c.where.here()) {
    call.RejectArg(3, "has " + std::to_string(c.counts.size(0)) + " elements, expected " +
                          std::to_string(c.where.ranks * c.where.here()));
  }
  c.weights = call.View(4);
  ExpectDtypes(call, 4, c.weights, {at::kFloat});
  call.ExpectSizes(4, c.weights, c.choices.ids.sizes());
  if (at.shared_x >= 0 && !call.IsAbsent(at.shared_x)) {
    if (c.where.shared_ranks != 0) {
      call.RejectArg(at.shared_x, "is given, and shared experts have ranks of their own");
    }
    c.shared_x = ReadTokens(call, at.shared_x, c, false);
  }
  ReadExpertsWithoutRank(call, at, &c);
  return c;
}

std::unique_ptr<Kernel> MakeCombine(Group group, const Combine& c,
                                    std::function<void(const Tensor&)> write) {
  const auto run = std::make_shared<CombineRun>();
  return MakeGroupKernel(
      std::move(group), [c, run] { return SendBack(c, run.get()); },
      [c, run, write] {
        write(SumChoices(c, *run));
        *run = CombineRun();
      });
}

std::unique_ptr<Kernel> BindCombine(const Call& call, const CombineArguments& at, bool first) {
  Group group(call, at.group);
  const Combine c = ReadCombine(call, at, group, first);
  const Tensor out = ReadTokens(call, at.out, c, true);
  return MakeCombine(std::move(group), c, [out](const Tensor& sum) { out.copy_(sum); });
}

// The sum goes on: x = sum + residual, y the root mean square norm of its rows with gamma, and one
// over the root.
std::unique_ptr<Kernel> BindCombineNorm(const Call& call, const CombineArguments& at) {
  Group group(call, at.group);
  const Combine c = ReadCombine(call, at, group, false);
  const Tensor residual = ReadTokens(call, at.residual, c, false);
  const Tensor gamma = call.View(at.residual + 1);
  ExpectDtypes(call, at.residual + 1, gamma, {c.rows.scalar_type()});
  call.ExpectSizes(at.residual + 1, gamma, {c.rows.size(1)});
  const double epsilon = call.Real(at.epsilon);
  const Tensor y = ReadTokens(call, at.out, c, true), x = ReadTokens(call, at.out + 2, c, true);
  Tensor rstd = call.Out(at.out + 1);
  ExpectDtypes(call, at.out + 1, rstd, {at::kFloat});
  if (rstd.numel() != residual.size(0)) {
    call.RejectArg(at.out + 1,
                   "has shape " + SizesText(rstd.sizes()) + ", expected one element a row");
  }
  rstd = rstd.view({residual.size(0), 1});
  return MakeCombine(std::move(group), c, [=](const Tensor& sum) {
    const Tensor total = sum + residual, inverse = InverseRms(total, {-1}, epsilon);
    x.copy_(total);
    rstd.copy_(inverse);
    y.copy_(total * inverse * gamma.to(at::kFloat));
  });
}

}  // namespace

KernelRows CombineExpertsRows() {
  constexpr Widen kNever = Widen::kNever;
  return {
      {"aclnnMoeDistributeCombine",
       [](const Call& call) { return BindCombine(call, kCombine, true); }},
      {"aclnnMoeDistributeCombineV2",
       [](const Call& call) { return BindCombine(call, kCombineV2, false); },
       kNever,
       {26}},
      {"aclnnMoeDistributeCombineV3",
       [](const Call& call) { return BindCombine(call, kCombineV3, false); },
       kNever,
       {31}},
      {"aclnnMoeDistributeCombineV4",
       [](const Call& call) { return BindCombine(call, kCombineV4, false); },
       kNever,
       {32}},
      {"aclnnMoeDistributeCombineAddRmsNorm",
       [](const Call& call) { return BindCombineNorm(call, kCombineNorm); },
       kNever,
       {28}},
      {"aclnnMoeDistributeCombineAddRmsNormV2",
       [](const Call& call) { return BindCombineNorm(call, kCombineNormV2); },
       kNever,
       {33}},
  };
}

}  // namespace acltape::opapi
