// The parts of a batch normalisation over several devices: each computes its sums, the sums are
// gathered, and each normalises with the statistics of all. Channels are dim 1.
#include <ATen/ATen.h>

#include "runtime/opapi/kernels/optional.h"
#include "runtime/opapi/kernels/whole.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

int64_t ChannelCount(const Call& call, int i, const Operand& input) {
  ExpectFloats(call, i, input.view());
  if (input.dim() < 2) call.RejectArg(i, "has less than 2 dims");
  return input.sizes()[1];
}

// All dims but the channels.
std::vector<int64_t> OtherDims(const Tensor& input) {
  std::vector<int64_t> dims;
  for (int64_t dim = 0; dim < input.dim(); ++dim) {
    if (dim != 1) dims.push_back(dim);
  }
  return dims;
}

// One value a channel, shaped to meet `input`.
Tensor PerChannel(const Tensor& values, const Tensor& input) {
  std::vector<int64_t> sizes(input.dim(), 1);
  sizes[1] = input.size(1);
  return values.reshape(sizes);
}

// The outputs that each hold one value a channel.
std::vector<Tensor> ChannelOuts(const Call& call, const std::vector<int>& positions,
                                int64_t channels) {
  std::vector<Tensor> outs;
  for (int i : positions) {
    outs.push_back(call.Out(i));
    call.ExpectSizes(i, outs.back(), {channels});
  }
  return outs;
}

// (x, sum, squareSum)
std::unique_ptr<Kernel> BindReduceSums(const Call& call) {
  const Operand x = call.In(0);
  const std::vector<Tensor> outs = ChannelOuts(call, {1, 2}, ChannelCount(call, 0, x));
  return MakeKernel([=] {
    const Tensor input = x();
    outs[0].copy_(input.sum(OtherDims(input)));
    outs[1].copy_((input * input).sum(OtherDims(input)));
  });
}

// (input, eps, mean, invstd)
std::unique_ptr<Kernel> BindStats(const Call& call) {
  const Operand input = call.In(0);
  const double eps = call.Real(1);
  const std::vector<Tensor> outs = ChannelOuts(call, {2, 3}, ChannelCount(call, 0, input));
  return MakeKernel([=] {
    const Tensor x = input();
    outs[0].copy_(x.mean(OtherDims(x)));
    outs[1].copy_(x.var(OtherDims(x), /*unbiased=*/false).add(eps).rsqrt());
  });
}

// Blends the running statistics with those of the batch.
void Blend(const Tensor& running, const Tensor& batch, double momentum) {
  if (running.defined()) running.copy_(running * (1 - momentum) + batch * momentum);
}

// (input, mean, invstd, runningMean?, runningVar?, momentum, eps, counts, meanAll, invstdAll): one
// row of mean and invstd, and one count, for each device
std::unique_ptr<Kernel> BindGatherStats(const Call& call) {
  const int64_t channels = ChannelCount(call, 0, call.In(0));
  const Operand mean = call.In(1), invstd = call.In(2), counts = call.In(7);
  const Tensor running_mean = call.OptionalOut(3), running_var = call.OptionalOut(4);
  const double momentum = call.Real(5), eps = call.Real(6);
  call.ExpectRank(7, counts.view(), 1);
  const int64_t devices = counts.sizes()[0];
  call.ExpectSizes(1, mean.view(), {devices, channels});
  call.ExpectSizes(2, invstd.view(), {devices, channels});
  for (int i : {3, 4}) {
    if (!call.IsNull(i)) call.ExpectSizes(i, call.View(i), {channels});
  }
  const std::vector<Tensor> outs = ChannelOuts(call, {8, 9}, channels);
  return MakeKernel([=] {
    const Tensor each = mean().to(at::kDouble), count = counts().to(at::kDouble).unsqueeze(1);
    const Tensor variance = invstd().to(at::kDouble).pow(-2) - eps;
    const Tensor total = count.sum();
    const Tensor all = (each * count).sum(0) / total;
    const Tensor spread = ((variance + (each - all).pow(2)) * count).sum(0);
    outs[0].copy_(all);
    outs[1].copy_((spread / total + eps).rsqrt());
    Blend(running_mean, all, momentum);
    Blend(running_var, spread / (total - 1), momentum);
  });
}

// (totalSum, totalSquareSum, sampleCount, mean, variance, momentum, eps, batchMean, batchInvstd):
// one row of sums, and one count, for each device
std::unique_ptr<Kernel> BindSyncGatherStats(const Call& call) {
  const Operand sum = call.In(0), squares = call.In(1), counts = call.In(2);
  const Tensor mean = call.Out(3), variance = call.Out(4);
  const double momentum = call.Real(5), eps = call.Real(6);
  call.ExpectRank(0, sum.view(), 2);
  call.ExpectSizes(1, squares.view(), sum.sizes());
  call.ExpectSizes(2, counts.view(), {sum.sizes()[0]});
  for (int i : {3, 4}) call.ExpectSizes(i, call.View(i), {sum.sizes()[1]});
  const std::vector<Tensor> outs = ChannelOuts(call, {7, 8}, sum.sizes()[1]);
  return MakeKernel([=] {
    const Tensor total = counts().to(at::kDouble).sum();
    const Tensor all = sum().to(at::kDouble).sum(0) / total;
    const Tensor spread = squares().to(at::kDouble).sum(0) - all * all * total;
    outs[0].copy_(all);
    outs[1].copy_((spread / total + eps).rsqrt());
    Blend(mean, all, momentum);
    Blend(variance, spread / (total - 1), momentum);
  });
}

// (input, weight?, bias?, mean, invstd, eps, output)
std::unique_ptr<Kernel> BindElementwise(const Call& call) {
  const Operand input = call.In(0), weight = call.OptionalIn(1), bias = call.OptionalIn(2);
  const Operand mean = call.In(3), invstd = call.In(4);
  const int64_t channels = ChannelCount(call, 0, input);
  for (int i : {1, 2, 3, 4}) {
    if (!call.IsAbsent(i)) call.ExpectSizes(i, call.View(i), {channels});
  }
  return BindWhole(call, 6, input.sizes(), [=] {
    const Tensor x = input();
    Tensor result = (x - PerChannel(mean(), x)) * PerChannel(invstd(), x);
    if (weight.defined()) result = result * PerChannel(weight(), x);
    if (bias.defined()) result = result + PerChannel(bias(), x);
    return result;
  });
}

// (gradOut, input, mean, invstd, weight, inputG, weightG, biasG, sumDy?, sumDyXmu?, gradWeight?,
// gradBias?)
std::unique_ptr<Kernel> BindReduceBackward(const Call& call) {
  const Operand gradient = call.In(0), input = call.In(1), mean = call.In(2), invstd = call.In(3);
  const int64_t channels = ChannelCount(call, 1, input);
  call.ExpectSizes(0, gradient.view(), input.sizes());
  for (int i : {2, 3, 4}) {
    if (!call.IsAbsent(i)) call.ExpectSizes(i, call.View(i), {channels});
  }
  const bool wanted[] = {call.Bool(5), call.Bool(5), call.Bool(6), call.Bool(7)};
  std::array<Tensor, 4> outs;
  for (int k = 0; k < 4; ++k) {
    if (!wanted[k]) continue;
    outs[k] = call.Out(8 + k);
    call.ExpectSizes(8 + k, outs[k], {channels});
  }
  return MakeKernel([=] {
    const Tensor x = input(), dy = gradient();
    const Tensor sum = dy.sum(OtherDims(x));
    const Tensor product = (dy * (x - PerChannel(mean(), x))).sum(OtherDims(x));
    CopyResult(outs[0], sum);
    CopyResult(outs[1], product);
    CopyResult(outs[2], product * invstd());
    CopyResult(outs[3], sum);
  });
}

// (gradOut, input, mean, invstd, weight?, sumDy, sumDyXmu, counter, gradInput)
std::unique_ptr<Kernel> BindElementwiseBackward(const Call& call) {
  const Operand gradient = call.In(0), input = call.In(1), mean = call.In(2), invstd = call.In(3);
  const Operand weight = call.OptionalIn(4), sum = call.In(5), product = call.In(6);
  const Operand counter = call.In(7);
  const int64_t channels = ChannelCount(call, 1, input);
  call.ExpectSizes(0, gradient.view(), input.sizes());
  for (int i : {2, 3, 5, 6}) call.ExpectSizes(i, call.View(i), {channels});
  if (weight.defined()) call.ExpectSizes(4, weight.view(), {channels});
  return BindWhole(call, 8, input.sizes(), [=] {
    const Tensor x = input(), total = counter().to(at::kFloat).sum();
    const Tensor inverse = PerChannel(invstd(), x);
    const Tensor of_mean = PerChannel(sum() / total, x);
    const Tensor of_spread = PerChannel(product() / total, x);
    const Tensor centred = x - PerChannel(mean(), x);
    Tensor result = (gradient() - of_mean - centred * inverse * inverse * of_spread) * inverse;
    if (weight.defined()) result = result * PerChannel(weight(), x);
    return result;
  });
}

}  // namespace

KernelRows BatchStatisticsRows() {
  constexpr Widen kBoth = Widen::kHalfAndBfloat16;
  return {
      {"aclnnBatchNormReduce", BindReduceSums, kBoth},
      {"aclnnBatchNormStats", BindStats, kBoth},
      {"aclnnBatchNormGatherStatsWithCounts", BindGatherStats, kBoth},
      {"aclnnSyncBatchNormGatherStats", BindSyncGatherStats, kBoth},
      {"aclnnBatchNormElemt", BindElementwise, kBoth},
      {"aclnnBatchNormReduceBackward", BindReduceBackward, kBoth, {4}},
      {"aclnnBatchNormElemtBackward", BindElementwiseBackward, kBoth},
  };
}

}  // namespace acltape::opapi
