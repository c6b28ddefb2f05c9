// Joins two results of fused attention of the same queries over different keys: attention in a ring
// of devices. Computed in float32 and rounded once at the end.
#include <ATen/ATen.h>

#include <string>
#include <vector>

#include "runtime/opapi/engine/kernel_table.h"
#include "runtime/opapi/kernels/expect_dtypes.h"
#include "runtime/opapi/kernels/packed_statistics.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

// A result of attention with the statistics of its softmax.
struct Attended {
  Tensor out, maximum, sum;
};

// The joint result of rows of float32; the statistics of each broadcast to its results.
Attended Join(const Attended& previous, const Attended& current) {
  Attended joint;
  joint.maximum = at::maximum(previous.maximum, current.maximum);
  const Tensor of_previous = previous.sum * (previous.maximum - joint.maximum).exp();
  const Tensor of_current = current.sum * (current.maximum - joint.maximum).exp();
  joint.sum = of_previous + of_current;
  joint.out = previous.out * (of_previous / joint.sum) + current.out * (of_current / joint.sum);
  return joint;
}

// Where the sequences begin when the task runs, and the end of the last one.
std::vector<int64_t> EndsOf(const Tensor& tensor, int64_t rows) {
  const Tensor wide = tensor.contiguous();
  std::vector<int64_t> ends(wide.data_ptr<int64_t>(), wide.data_ptr<int64_t>() + wide.numel());
  TORCH_CHECK(ends.front() == 0 && ends.back() == rows, "actualSeqQlenOptional runs from ",
              ends.front(), " to ", ends.back(), ", not from 0 to ", rows);
  for (size_t i = 1; i < ends.size(); ++i) {
    TORCH_CHECK(ends[i] >= ends[i - 1], "actualSeqQlenOptional is not ascending at entry ", i);
  }
  return ends;
}

struct RingCall {
  Attended previous, current, joint;

  // [sequence, batch, heads * width]; the statistics are [batch, heads, sequence, 8].
  void RunBatches() const {
    const int64_t heads = previous.maximum.size(1), batches = previous.out.size(1);
    const auto split = [&](const Tensor& out) {
      return out.to(at::kFloat).view({out.size(0), batches, heads, -1}).permute({1, 2, 0, 3});
    };
    const auto one = [&](const Attended& part) {
      return Attended{split(part.out.contiguous()), part.maximum.narrow(-1, 0, 1),
                      part.sum.narrow(-1, 0, 1)};
    };
    const Attended result = Join(one(previous), one(current));
    joint.out.copy_(result.out.permute({2, 0, 1, 3}).reshape(joint.out.sizes()));
    joint.maximum.copy_(result.maximum.expand_as(joint.maximum));
    joint.sum.copy_(result.sum.expand_as(joint.sum));
  }

  // [rows, heads, width], with sequences that follow each other; the statistics are
  // [rows, heads, 8] in their own order.
  void RunSequences(const Tensor& ends, StatisticOrder order) const {
    const int64_t rows = previous.out.size(0), heads = previous.out.size(1);
    const std::vector<int64_t> limits = EndsOf(ends, rows);
    const auto statistics = [&](const Attended& part) {
      return std::pair(PackedStatistic::Of(part.maximum, heads, order),
                       PackedStatistic::Of(part.sum, heads, order));
    };
    const auto [maximum, sum] = statistics(previous);
    const auto [current_maximum, current_sum] = statistics(current);
    const Tensor out = at::empty(joint.out.sizes(), at::kFloat);
    const PackedStatistic new_maximum = PackedStatistic::Empty(rows, heads, order);
    const PackedStatistic new_sum = PackedStatistic::Empty(rows, heads, order);
    for (size_t i = 1; i < limits.size(); ++i) {
      const int64_t first = limits[i - 1], count = limits[i] - first;
      const auto heads_first = [&](const Tensor& all) {
        return all.narrow(0, first, count).transpose(0, 1).unsqueeze(0);
      };
      const auto one = [&](const Tensor& all, const PackedStatistic& top,
                           const PackedStatistic& total) {
        return Attended{heads_first(all).to(at::kFloat),
                        top.Sequence(first, count).narrow(-1, 0, 1),
                        total.Sequence(first, count).narrow(-1, 0, 1)};
      };
      const Attended result =
          Join(one(previous.out, maximum, sum), one(current.out, current_maximum, current_sum));
      heads_first(out).copy_(result.out);
      new_maximum.Sequence(first, count).copy_(result.maximum.expand({-1, -1, -1, 8}));
      new_sum.Sequence(first, count).copy_(result.sum.expand({-1, -1, -1, 8}));
    }
    joint.out.copy_(out);
    new_maximum.CopyTo(joint.maximum);
    new_sum.CopyTo(joint.sum);
  }
};

// (prevAttnOut, prevSoftmaxMax, prevSoftmaxSum, curAttnOut, curSoftmaxMax, curSoftmaxSum,
// actualSeqQlen?, inputLayout, [inputSoftmaxLayout?,] attnOut, softmaxMax, softmaxSum)
std::unique_ptr<Kernel> BindRing(const Call& call, bool has_order) {
  const int out = has_order ? 9 : 8;
  const std::string layout = call.Text(7);
  if (layout != "TND" && layout != "SBH") call.RejectArg(7, "must be \"TND\" or \"SBH\"");
  const bool packed = layout == "TND";
  RingCall ring;
  ring.previous = {call.View(0), call.View(1), call.View(2)};
  ring.current = {call.View(3), call.View(4), call.View(5)};
  ring.joint = {call.Out(out), call.Out(out + 1), call.Out(out + 2)};

  const Tensor& attended = ring.previous.out;
  call.ExpectRank(0, attended, 3);
  if (attended.numel() == 0) call.RejectArg(0, "is empty");
  ExpectDtypes(call, 0, attended, {at::kFloat, at::kHalf, at::kBFloat16});
  for (const auto& [i, tensor] : {std::pair(3, ring.current.out), std::pair(out, ring.joint.out)}) {
    call.ExpectSizes(i, tensor, attended.sizes());
    ExpectDtypes(call, i, tensor, {attended.scalar_type()});
  }

  const Tensor& statistic = ring.previous.maximum;
  if (packed) {
    call.ExpectSizes(1, statistic, {attended.size(0), attended.size(1), 8});
    if (attended.size(1) > 256) call.RejectArg(0, "has more than 256 heads");
    if (attended.size(2) % 64 != 0 || attended.size(2) > 768) {
      call.RejectArg(0, "must have a width that is a multiple of 64, at most 768");
    }
  } else {
    call.ExpectRank(1, statistic, 4);
    call.ExpectSizes(1, statistic, {attended.size(1), statistic.size(1), attended.size(0), 8});
    if (statistic.size(1) == 0 || attended.size(2) % statistic.size(1) != 0) {
      call.RejectArg(1, "has a number of heads that does not divide prevAttnOut's columns");
    }
  }
  const std::pair<int, Tensor> statistics[] = {
      {1, statistic},        {2, ring.previous.sum},        {4, ring.current.maximum},
      {5, ring.current.sum}, {out + 1, ring.joint.maximum}, {out + 2, ring.joint.sum}};
  for (const auto& [i, tensor] : statistics) {
    call.ExpectSizes(i, tensor, statistic.sizes());
    ExpectDtypes(call, i, tensor, {at::kFloat});
  }
  if (!packed) return MakeKernel([ring] { ring.RunBatches(); });

  if (call.IsAbsent(6)) call.RejectArg(6, "is absent, but the layout \"TND\" needs it");
  const Tensor ends = call.View(6);
  call.ExpectRank(6, ends, 1);
  ExpectDtypes(call, 6, ends, {at::kLong});
  const std::string order_name = has_order ? call.Text(8) : "";
  if (!order_name.empty() && order_name != "SBH" && order_name != "TND") {
    call.RejectArg(8, "must be empty, \"SBH\" or \"TND\"");
  }
  const StatisticOrder order =
      order_name == "TND" ? StatisticOrder::kLikeInput : StatisticOrder::kHeadsOfSequence;
  return MakeKernel([ring, ends, order] { ring.RunSequences(ends, order); });
}

}  // namespace

KernelRows RingAttentionRows() {
  return {
      {"aclnnRingAttentionUpdate",
       [](const Call& call) { return BindRing(call, /*has_order=*/false); }},
      {"aclnnRingAttentionUpdateV2",
       [](const Call& call) { return BindRing(call, /*has_order=*/true); },
       Widen::kNever,
       {8}},
  };
}

}  // namespace acltape::opapi
