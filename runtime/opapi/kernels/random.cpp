// Random operators. Numbers come from a generator that a seed and an offset give, and the Tensor
// forms give the same numbers as the others for the same values.
#include <ATen/ATen.h>

#include <limits>

#include "runtime/opapi/engine/kernel_table.h"
#include "runtime/opapi/engine/target.h"
#include "runtime/opapi/kernels/expect_dtypes.h"
#include "runtime/opapi/kernels/random_generator.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

// A kernel finds seed and offset in its arguments, or in device memory when it runs.
class SeedSource {
 public:
  // (..., seed, offset) from position `first`
  static SeedSource Values(const Call& call, int first) {
    SeedSource source;
    source.seed_ = call.Int(first);
    source.offset_ = call.Int(first + 1);
    return source;
  }

  // (..., seedTensor, offsetTensor, offset) from position `first`
  static SeedSource Tensors(const Call& call, int first) {
    SeedSource source;
    source.seed_tensor_ = call.View(first);
    source.offset_tensor_ = call.View(first + 1);
    for (int i : {first, first + 1}) {
      if (call.View(i).numel() != 1) call.RejectArg(i, "must have one element");
    }
    source.offset_ = call.Int(first + 2);
    return source;
  }

  at::Generator Generator() const {
    if (!seed_tensor_.defined()) return MakeGenerator(seed_, offset_);
    return MakeGenerator(seed_tensor_.item().toLong(), offset_tensor_.item().toLong() + offset_);
  }

 private:
  int64_t seed_ = 0;
  int64_t offset_ = 0;
  Tensor seed_tensor_;
  Tensor offset_tensor_;
};

using ReadSeed = SeedSource (*)(const Call&, int);

// A kernel that calls `draw(tensor)` to fill `self` with numbers. For integers they are drawn in
// float32, and their fractions are cut off.
template <typename Draw>
std::unique_ptr<Kernel> Drawn(Tensor self, Draw draw) {
  if (at::isFloatingType(self.scalar_type()) || at::isComplexType(self.scalar_type())) {
    return MakeKernel([=]() mutable { draw(self); });
  }
  return MakeKernel([=] {
    Tensor drawn = at::empty(self.sizes(), at::kFloat);
    draw(drawn);
    self.copy_(drawn);
  });
}

// (selfRef, from, to, seed...)
Binder Uniform(ReadSeed read) {
  return [=](const Call& call) {
    Tensor self = call.Out(0);
    const double from = call.Real(1), to = call.Real(2);
    if (!(from <= to)) call.RejectArg(1, "is greater than to");
    const SeedSource seed = read(call, 3);
    return Drawn(self, [=](Tensor& drawn) { drawn.uniform_(from, to, seed.Generator()); });
  };
}

// (selfRef, mean, std, seed...)
Binder Normal(ReadSeed read) {
  return [=](const Call& call) {
    Tensor self = call.Out(0);
    const double mean = call.Real(1), deviation = call.Real(2);
    if (!(deviation >= 0)) call.RejectArg(2, "is negative");
    const SeedSource seed = read(call, 3);
    return Drawn(self, [=](Tensor& drawn) { drawn.normal_(mean, deviation, seed.Generator()); });
  };
}

// (mean, std, seed, offset, out), each of the first two a number or a tensor that broadcasts to out
std::unique_ptr<Kernel> BindNormalOf(const Call& call) {
  Tensor out = call.Out(4);
  const auto read = [&](int i) {
    return call.Arg(i).kind == acl::ArgKind::kTensor ? call.In(i) : Operand();
  };
  const Operand mean = read(0), deviation = read(1);
  const double mean_number = mean.defined() ? 0 : call.Real(0);
  const double deviation_number = deviation.defined() ? 1 : call.Real(1);
  if (!(deviation_number >= 0)) call.RejectArg(1, "is negative");
  for (const Operand* operand : {&mean, &deviation}) {
    if (operand->defined() &&
        call.Broadcast({operand->sizes(), out.sizes()}) != out.sizes().vec()) {
      call.RejectArg(operand == &mean ? 0 : 1, "does not broadcast to out");
    }
  }
  if (!at::isFloatingType(out.scalar_type())) call.RejectArg(4, "is of no floating dtype");
  const SeedSource seed = SeedSource::Values(call, 2);
  return MakeKernel([=]() mutable {
    Tensor drawn = at::empty(out.sizes(), out.options()).normal_(0, 1, seed.Generator());
    drawn = deviation.defined() ? drawn * deviation() : drawn * deviation_number;
    out.copy_(mean.defined() ? drawn + mean() : drawn + mean_number);
  });
}

// (selfRef, from, to, seed...): integers of the half-open range
Binder Random(ReadSeed read) {
  return [=](const Call& call) {
    Tensor self = call.Out(0);
    const int64_t from = call.Int(1), to = call.Int(2);
    if (from >= to) call.RejectArg(1, "is not less than to");
    const SeedSource seed = read(call, 3);
    return MakeKernel([=]() mutable { self.random_(from, to, seed.Generator()); });
  };
}

// (selfRef, seed...): integers of the dtype's own range
Binder RandomWhole(ReadSeed read) {
  return [=](const Call& call) {
    Tensor self = call.Out(0);
    const SeedSource seed = read(call, 1);
    return MakeKernel([=]() mutable { self.random_(seed.Generator()); });
  };
}

// (self, prob, seed, offset, out): self gives the sizes and the dtype, and is not read.
std::unique_ptr<Kernel> BindBernoulli(const Call& call) {
  Tensor self = call.Out(4);
  call.ExpectSizes(4, self, call.View(0).sizes());
  if (self.scalar_type() != call.View(0).scalar_type()) {
    call.RejectArg(4, "has another dtype than self");
  }
  const double probability = call.Number(1).toDouble();
  if (!(probability >= 0 && probability <= 1)) call.RejectArg(1, "is no probability");
  const SeedSource seed = SeedSource::Values(call, 2);
  const bool half = self.scalar_type() == at::kHalf;
  return MakeKernel([=]() mutable {
    if (half) {  // some versions of the library lack this
      self.copy_(at::empty(self.sizes(), at::kFloat).bernoulli_(probability, seed.Generator()));
    } else {
      self.bernoulli_(probability, seed.Generator());
    }
  });
}

// (selfRef, prob tensor, seed, offset)
std::unique_ptr<Kernel> BindBernoulliTensor(const Call& call) {
  Tensor self = call.Out(0);
  const Tensor probability = call.View(1);
  if (call.Broadcast({probability.sizes(), self.sizes()}) != self.sizes().vec()) {
    call.RejectArg(1, "does not broadcast to selfRef");
  }
  const SeedSource seed = SeedSource::Values(call, 2);
  return MakeKernel([=]() mutable { self.bernoulli_(probability, seed.Generator()); });
}

// (self, prob tensor, seed, offset, out): self gives the sizes and the dtype, and is not read.
std::unique_ptr<Kernel> BindBernoulliOfTensor(const Call& call) {
  const Tensor probability = call.View(1), out = call.Out(4);
  ExpectFloats(call, 1, probability);
  call.ExpectSizes(4, out, call.View(0).sizes());
  ExpectDtypes(call, 4, out, {call.View(0).scalar_type()});
  if (call.Broadcast({probability.sizes(), out.sizes()}) != out.sizes().vec()) {
    call.RejectArg(1, "does not broadcast to out");
  }
  const SeedSource seed = SeedSource::Values(call, 2);
  return MakeKernel([=] {
    const Tensor drawn = at::empty(out.sizes(), at::kFloat);
    out.copy_(drawn.bernoulli_(probability.to(at::kFloat), seed.Generator()));
  });
}

// (self, noise, lower, upper, training, seed, offset[, out]), with `out` at position `out_index`:
// negative numbers times a slope, which training draws between the bounds for each of them and
// writes to the noise; other numbers have the noise 1 then. Else the slope is the middle of the
// bounds, and the noise stays as it was. The vendor's page is
// aclnnRReluWithNoise&aclnnInplaceRReluWithNoise.
Binder RReluWithNoise(int out_index) {
  return [out_index](const Call& call) {
    const Operand self = call.In(0);
    ExpectDtypes(call, 0, self.view(), {at::kFloat, at::kHalf, at::kBFloat16});
    const Tensor noise = call.Out(1), out = call.Out(out_index);
    for (int i : {1, out_index}) {
      ExpectDtypes(call, i, call.View(i), {self.view().scalar_type()});
      call.ExpectSizes(i, call.View(i), self.sizes());
    }
    const double lower = call.Number(2).toDouble(), upper = call.Number(3).toDouble();
    if (!(lower <= upper)) call.RejectArg(2, "is greater than upper");
    const bool training = call.Bool(4);
    const SeedSource seed = SeedSource::Values(call, 5);
    return MakeKernel([=] {
      const Tensor x = self();
      if (!training) {
        out.copy_(at::where(x > 0, x, x * ((lower + upper) / 2)));
        return;
      }
      const Tensor draws = at::empty(x.sizes(), at::kFloat).uniform_(0, 1, seed.Generator());
      const Tensor slope = at::where(x > 0, at::ones_like(x), draws * (upper - lower) + lower);
      noise.copy_(slope);
      out.copy_(x * slope);
    });
  };
}

// (mean, std, seed, offset, out)
std::unique_ptr<Kernel> BindNormalFloatFloat(const Call& call) {
  Tensor out = call.Out(4);
  const double mean = call.Real(0), deviation = call.Real(1);
  if (!(deviation >= 0)) call.RejectArg(1, "is negative");
  const SeedSource seed = SeedSource::Values(call, 2);
  return MakeKernel([=]() mutable { out.normal_(mean, deviation, seed.Generator()); });
}

// (n, seed, offset, out)
std::unique_ptr<Kernel> BindRandperm(const Call& call) {
  const int64_t n = call.Int(0);
  const Tensor out = call.Out(3);
  call.ExpectSizes(3, out, {n});
  const SeedSource seed = SeedSource::Values(call, 1);
  return MakeKernel(
      [=] { out.copy_(at::randperm(n, seed.Generator(), at::TensorOptions(out.scalar_type()))); });
}

// (self, numsamples, replacement, seed..., out)
Binder Multinomial(ReadSeed read, int out_index) {
  return [=](const Call& call) {
    const Operand self = call.In(0);
    const int64_t samples = call.Int(1);
    const bool replacement = call.Bool(2);
    const SeedSource seed = read(call, 3);
    if (self.dim() < 1 || self.dim() > 2) call.RejectArg(0, "must have 1 or 2 dims");
    if (samples < 1 || (!replacement && samples > self.sizes().back())) {
      call.RejectArg(1, "is not possible with so many categories");
    }
    std::vector<int64_t> sizes = self.sizes().vec();
    sizes.back() = samples;
    const Tensor out = call.Out(out_index);
    call.ExpectSizes(out_index, out, sizes);
    return MakeKernel(
        [=] { out.copy_(at::multinomial(self(), samples, replacement, seed.Generator())); });
  };
}

// Dropout masks hold one bit per element, least significant first, padded to 128 bits.
int64_t MaskBytes(int64_t elements) { return (elements + 127) / 128 * 16; }

void ExpectDropProbability(const Call& call, int i) {
  const double drop = call.Real(i);
  if (!(drop >= 0 && drop <= 1)) call.RejectArg(i, "is no probability");
}

void ExpectMaskBytes(const Call& call, int i, const Tensor& mask, int64_t bytes) {
  if (mask.scalar_type() != at::kByte) call.RejectArg(i, "must be a uint8 tensor");
  if (mask.numel() < bytes) {
    call.RejectArg(
        i, "has " + std::to_string(mask.numel()) + " bytes, expected " + std::to_string(bytes));
  }
}

void ExpectMask(const Call& call, int i, const Tensor& mask, int64_t bytes) {
  if (mask.scalar_type() != at::kByte || !mask.is_contiguous()) {
    call.RejectArg(i, "must be a dense uint8 tensor");
  }
  ExpectMaskBytes(call, i, mask, bytes);
}

// A bit is 1 where the element is kept.
void DrawMask(const Tensor& mask, int64_t elements, double drop, const at::Generator& generator) {
  const Tensor draws = at::empty({elements}, at::kFloat).uniform_(0, 1, generator);
  const float* draw = draws.data_ptr<float>();
  auto* bytes = mask.data_ptr<uint8_t>();
  std::fill(bytes, bytes + mask.numel(), 0);
  for (int64_t i = 0; i < elements; ++i) {
    if (draw[i] >= drop) bytes[i / 8] |= static_cast<uint8_t>(1u << (i % 8));
  }
}

// The values that are kept, times `scale`, and zeros for the others.
Tensor ApplyMask(const Tensor& values, const Tensor& mask, double scale) {
  Tensor keep = at::empty(values.sizes(), at::kFloat);
  const auto* bytes = mask.data_ptr<uint8_t>();
  auto* factor = keep.data_ptr<float>();
  const auto kept = static_cast<float>(scale);
  for (int64_t i = 0; i < keep.numel(); ++i) factor[i] = (bytes[i / 8] >> (i % 8) & 1) ? kept : 0;
  const Tensor scaled = values * keep;
  return at::where(keep.eq(0), at::zeros({}, scaled.options()), scaled);
}

double KeptScale(double drop) { return drop == 1 ? 0 : 1 / (1 - drop); }

// (shape, prob, seed..., [probDataType,] out)
Binder DropoutMask(ReadSeed read, int out_index) {
  return [=](const Call& call) {
    constexpr int64_t kMostElements = std::numeric_limits<int64_t>::max() / 2;
    int64_t elements = 1;
    for (int64_t size : call.Ints(0)) {
      if (size < 0 || (size > 0 && elements > kMostElements / size)) {
        call.RejectArg(0, "is no shape of a tensor");
      }
      elements *= size;
    }
    const double drop = call.Real(1);
    ExpectDropProbability(call, 1);
    const SeedSource seed = read(call, 2);
    const Tensor out = call.Out(out_index);
    call.ExpectRank(out_index, out, 1);
    ExpectMaskBytes(call, out_index, out, MaskBytes(elements));
    return MakeKernel([=] {
      const Tensor dense = out.is_contiguous() ? out : at::empty(out.sizes(), at::kByte);
      DrawMask(dense, elements, drop, seed.Generator());
      if (!out.is_contiguous()) out.copy_(dense);
    });
  };
}

// (self, mask, prob, out): kept elements divided by 1 - prob, the others 0.
std::unique_ptr<Kernel> BindDropoutDoMask(const Call& call) {
  const Operand self = call.In(0);
  const Tensor mask = call.View(1), out = call.Out(3);
  const double drop = call.Real(2);
  ExpectDropProbability(call, 2);
  ExpectMask(call, 1, mask, (self.view().numel() + 7) / 8);
  call.ExpectSizes(3, out, self.sizes());
  return MakeKernel([=] { out.copy_(ApplyMask(self(), mask, KeptScale(drop))); });
}

// (input, noiseShape?, p, seed, offset, out, mask): both of the operators above in one
std::unique_ptr<Kernel> BindDropout(const Call& call) {
  const Operand input = call.In(0);
  if (!at::isFloatingType(input.view().scalar_type())) call.RejectArg(0, "has no floating dtype");
  if (!call.IsAbsent(1)) call.RejectArg(1, "is given; the soft device draws for each element");
  const double drop = call.Real(2);
  ExpectDropProbability(call, 2);
  const SeedSource seed = SeedSource::Values(call, 3);
  const Tensor out = call.Out(5), mask = call.Out(6);
  call.ExpectSizes(5, out, input.sizes());
  const int64_t elements = input.view().numel();
  ExpectMask(call, 6, mask, MaskBytes(elements));
  return MakeKernel([=] {
    DrawMask(mask, elements, drop, seed.Generator());
    out.copy_(ApplyMask(input(), mask, KeptScale(drop)));
  });
}

// (gradY, mask, scale, gradX)
std::unique_ptr<Kernel> BindDropoutGrad(const Call& call) {
  const Operand gradient = call.In(0);
  const Tensor mask = call.View(1), out = call.Out(3);
  const double scale = call.Real(2);
  ExpectMask(call, 1, mask, (gradient.view().numel() + 7) / 8);
  call.ExpectSizes(3, out, gradient.sizes());
  return MakeKernel([=] { out.copy_(ApplyMask(gradient(), mask, scale)); });
}

// (gradOutput, mask, scale, out): as above, but the scale 1 stands for a call that dropped nothing.
std::unique_ptr<Kernel> BindDropoutBackward(const Call& call) {
  const Operand gradient = call.In(0);
  if (!at::isFloatingType(gradient.dtype())) call.RejectArg(0, "has no floating dtype");
  const Tensor mask = call.View(1), out = call.Out(3);
  const double scale = call.Real(2);
  if (scale != 0 && !(scale >= 1)) call.RejectArg(2, "must be 0 or at least 1");
  ExpectMask(call, 1, mask, MaskBytes(gradient.view().numel()));
  call.ExpectSizes(3, out, gradient.sizes());
  return MakeKernel(
      [=] { out.copy_(scale == 1 ? gradient() : ApplyMask(gradient(), mask, scale)); });
}

// (selfRef, count, lambda, seed, offset)
std::unique_ptr<Kernel> BindExponential(const Call& call) {
  const Tensor self = call.Out(0);
  if (!at::isFloatingType(self.scalar_type())) call.RejectArg(0, "has no floating dtype");
  if (call.Int(1) != self.numel()) {
    call.RejectArg(1, "is not the " + std::to_string(self.numel()) + " elements of selfRef");
  }
  const double lambda = call.Real(2);
  if (!(lambda > 0)) call.RejectArg(2, "must be positive");
  const SeedSource seed = SeedSource::Values(call, 3);
  const at::ScalarType drawn = self.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  return MakeKernel(
      [=] { self.copy_(at::empty(self.sizes(), drawn).exponential_(lambda, seed.Generator())); });
}

}  // namespace

KernelRows RandomRows() {
  const ReadSeed values = SeedSource::Values, tensors = SeedSource::Tensors;
  return {
      {"aclnnInplaceUniform", Uniform(values)},
      {"aclnnInplaceUniformTensor", Uniform(tensors)},
      {"aclnnNormalFloatTensor", BindNormalOf},
      {"aclnnNormalTensorFloat", BindNormalOf},
      {"aclnnNormalTensorTensor", BindNormalOf},
      {"aclnnInplaceNormal", Normal(values)},
      {"aclnnInplaceNormalTensor", Normal(tensors)},
      {"aclnnInplaceRandom", Random(values)},
      {"aclnnInplaceRandomTensor", Random(tensors)},
      {"aclnnInplaceRandomWithoutFromTo", RandomWhole(values)},
      {"aclnnInplaceRandomWithoutFromToTensor", RandomWhole(tensors)},
      {"aclnnBernoulli", kAlsoInPlace, BindBernoulli},
      {"aclnnInplaceBernoulliTensor", BindBernoulliTensor},
      {"aclnnBernoulliTensor", BindBernoulliOfTensor},
      {"aclnnNormalFloatFloat", BindNormalFloatFloat},
      {"aclnnRandperm", BindRandperm},
      {"aclnnMultinomial", Multinomial(values, 5), Widen::kHalf},
      {"aclnnMultinomialTensor", Multinomial(tensors, 6), Widen::kHalf},
      {"aclnnDropoutGenMask", DropoutMask(values, 4)},
      {"aclnnDropoutGenMaskV2", DropoutMask(values, 5)},
      {"aclnnDropoutGenMaskV2Tensor", DropoutMask(tensors, 6)},
      {"aclnnDropoutDoMask", BindDropoutDoMask, Widen::kHalf},
      {"aclnnDropoutV3", BindDropout, Widen::kHalf},
      {"aclnnDropoutV3Grad", BindDropoutGrad, Widen::kHalf},
      {"aclnnDropoutBackward", BindDropoutBackward, Widen::kHalfAndBfloat16},
      {"aclnnSimThreadExponential", BindExponential},
      {"aclnnRReluWithNoise", RReluWithNoise(7), Widen::kHalfAndBfloat16},
      {"aclnnInplaceRReluWithNoise", RReluWithNoise(0), Widen::kHalfAndBfloat16},
  };
}

}  // namespace acltape::opapi
