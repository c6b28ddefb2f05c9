// Hyper-connections: a model keeps several streams of its residual. Before a layer they are
// collapsed to one, after it they are mixed and the layer's result is added to each. The matrix
// that mixes them is made nearly doubly stochastic by Sinkhorn's iteration.
#include <ATen/ATen.h>

#include <vector>

#include "runtime/opapi/kernels/expect_dtypes.h"
#include "runtime/opapi/kernels/whole.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

void ExpectFloatOrHalf(const Call& call, int i, const Tensor& tensor) {
  ExpectFloats(call, i, tensor);
  if (tensor.scalar_type() == at::kDouble) ExpectDtypes(call, i, tensor, {at::kFloat});
}

void ExpectElements(const Call& call, int i, const Tensor& tensor) {
  if (tensor.numel() == 0) call.RejectArg(i, "is empty");
}

std::vector<int64_t> With(at::IntArrayRef sizes, std::initializer_list<int64_t> more) {
  std::vector<int64_t> result = sizes.vec();
  result.insert(result.end(), more);
  return result;
}

// 1 / the root of the mean square of all streams, of streams [..., streams, width] in float32.
Tensor InverseRoot(const Tensor& x, double epsilon) {
  return x.square().mean({-2, -1}).add(epsilon).sqrt().reciprocal();
}

// Streams x [..., streams, width] in bfloat16, what they are mixed by, and what is made of them.
struct Streams {
  Streams(const Call& call, int x_index, int scale_index, int number_index, int out_index)
      : x(call.View(x_index)),
        scale(call.View(scale_index)),
        base(call.View(scale_index + 1)),
        y(call.Out(out_index)),
        post(call.Out(out_index + 1)),
        mixed(call.Out(out_index + 2)),
        count(call.Int(number_index)),
        iterations(call.Int(number_index + 1)),
        epsilon(call.Real(number_index + 2)) {
    if (x.dim() != 3 && x.dim() != 4) call.RejectArg(x_index, "must have 3 or 4 dims");
    ExpectElements(call, x_index, x);
    ExpectDtypes(call, x_index, x, {at::kBFloat16});
    if (count != x.size(-2)) call.RejectArg(number_index, "is not the number of streams of x");
    if (iterations < 1 || iterations > 10000) {
      call.RejectArg(number_index + 1, "must be between 1 and 10000");
    }
    ExpectDtypes(call, scale_index, scale, {at::kFloat});
    call.ExpectSizes(scale_index, scale, {3});
    ExpectDtypes(call, scale_index + 1, base, {at::kFloat});
    call.ExpectSizes(scale_index + 1, base, {mixes()});
    call.ExpectSizes(out_index, y, With(leading(), {x.size(-1)}));
    call.ExpectSizes(out_index + 1, post, With(leading(), {count}));
    call.ExpectSizes(out_index + 2, mixed, With(leading(), {count, count}));
    ExpectDtypes(call, out_index, y, {at::kBFloat16});
    for (int i : {1, 2}) ExpectDtypes(call, out_index + i, i == 1 ? post : mixed, {at::kFloat});
  }

  at::IntArrayRef leading() const { return x.sizes().slice(0, x.dim() - 2); }
  // Weights of the sum, of the additions and of the mixing matrix.
  int64_t mixes() const { return (2 + count) * count; }

  // `weights` [..., mixes] in float32, which the mean square has not scaled yet.
  void Collapse(const Tensor& weights, const Tensor& root) const {
    const Tensor scaled = weights * root.unsqueeze(-1);
    const auto part = [&](int which, int64_t size) {
      return scaled.narrow(-1, which * count, size) * scale[which] +
             base.narrow(0, which * count, size);
    };
    const Tensor before = at::sigmoid(part(0, count)) + epsilon;
    y.copy_((x.to(at::kFloat) * before.unsqueeze(-1)).sum(-2));
    post.copy_(at::sigmoid(part(1, count)) * 2);
    const Tensor logits = part(2, count * count).reshape(mixed.sizes());
    Tensor matrix = at::softmax(logits, -1) + epsilon;
    for (int64_t i = 0; i < iterations; ++i) {
      if (i > 0) matrix = matrix / (matrix.sum(-1, /*keepdim=*/true) + epsilon);
      matrix = matrix / (matrix.sum(-2, /*keepdim=*/true) + epsilon);
    }
    mixed.copy_(matrix);
  }

  Tensor x, scale, base, y, post, mixed;
  int64_t count, iterations;
  double epsilon;
};

// (x [..., streams, width], epsilon, out [..., 1])
std::unique_ptr<Kernel> BindHcPreInvRms(const Call& call) {
  const Tensor x = call.View(0), out = call.Out(2);
  const double epsilon = call.Real(1);
  if (x.dim() != 3 && x.dim() != 4) call.RejectArg(0, "must have 3 or 4 dims");
  ExpectFloatOrHalf(call, 0, x);
  ExpectElements(call, 0, x);
  if (!(epsilon >= 0)) call.RejectArg(1, "is below 0");
  ExpectDtypes(call, 2, out, {at::kFloat});
  call.ExpectSizes(2, out, With(x.sizes().slice(0, x.dim() - 2), {1}));
  return MakeKernel([=] { out.copy_(InverseRoot(x.to(at::kFloat), epsilon).unsqueeze(-1)); });
}

// (mixes [..., mixes], rsqrt [..., 1], hcScale, hcBase, x, hcMult, hcSinkhornIters, hcEps, y, post,
// combFrag)
std::unique_ptr<Kernel> BindHcPreSinkhorn(const Call& call) {
  const Tensor weights = call.View(0), root = call.View(1);
  const Streams streams(call, 4, 2, 5, 8);
  ExpectDtypes(call, 0, weights, {at::kFloat});
  ExpectDtypes(call, 1, root, {at::kFloat});
  call.ExpectSizes(0, weights, With(streams.leading(), {streams.mixes()}));
  call.ExpectSizes(1, root, With(streams.leading(), {1}));
  return MakeKernel([=] { streams.Collapse(weights, root.squeeze(-1)); });
}

// (x, hcFn [mixes, streams * width], hcScale, hcBase, hcMult, hcSinkhornIters, hcEps, normEps, y,
// post, combFrag): the product is in float32, that of a device rounds to 11 bits before it.
std::unique_ptr<Kernel> BindHcPre(const Call& call) {
  const Streams streams(call, 0, 2, 4, 8);
  const Tensor x = streams.x, weight = call.View(1);
  const double epsilon = call.Real(7);
  ExpectDtypes(call, 1, weight, {at::kFloat});
  call.ExpectSizes(1, weight, {streams.mixes(), streams.count * x.size(-1)});
  return MakeKernel([=] {
    const Tensor wide = x.to(at::kFloat);
    streams.Collapse(at::matmul(wide.flatten(-2), weight.t()), InverseRoot(wide, epsilon));
  });
}

// (x [b, s, width], residual [b, s, streams, width], post [b, s, streams], comb [b, s, streams,
// streams], out): a layer's result is added to the mixed streams.
std::unique_ptr<Kernel> BindHcPost(const Call& call) {
  const Tensor x = call.View(0), residual = call.View(1), post = call.View(2), comb = call.View(3);
  call.ExpectRank(0, x, 3);
  call.ExpectRank(1, residual, 4);
  for (int i : {0, 1}) ExpectElements(call, i, i == 0 ? x : residual);
  for (int i : {0, 2}) ExpectFloatOrHalf(call, i, i == 0 ? x : post);
  const int64_t count = residual.size(2);
  call.ExpectSizes(1, residual, {x.size(0), x.size(1), count, x.size(2)});
  call.ExpectSizes(2, post, {x.size(0), x.size(1), count});
  call.ExpectSizes(3, comb, {x.size(0), x.size(1), count, count});
  ExpectDtypes(call, 1, residual, {x.scalar_type()});
  ExpectDtypes(call, 3, comb, {post.scalar_type()});
  ExpectDtypes(call, 4, call.View(4), {x.scalar_type()});
  return BindWhole(call, 4, residual.sizes(), [=] {
    const Tensor mixed = at::matmul(comb.to(at::kFloat).transpose(-1, -2), residual.to(at::kFloat));
    return mixed + post.to(at::kFloat).unsqueeze(-1) * x.to(at::kFloat).unsqueeze(-2);
  });
}

}  // namespace

KernelRows HyperConnectionRows() {
  return {
      {"aclnnHcPreInvRms", BindHcPreInvRms},
      {"aclnnHcPreSinkhorn", BindHcPreSinkhorn},
      {"aclnnHcPre", BindHcPre},
      {"aclnnHcPost", BindHcPost},
  };
}

}  // namespace acltape::opapi
