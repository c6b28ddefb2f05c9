// Parts of networks against formulas in double: batch normalisation over several devices, deep
// norm, the gradient of an LSTM cell, and rotary positions in place.
#include <cmath>

#include "tests/opapi/grid/formula.h"

namespace acltape::opapi::grid {
namespace {

const Tolerance kInFloats = {32, 1e-5, false, "the operator computes in float32"};

Tensor Doubles(const In& in, int i) { return in[i].to(at::kDouble); }

// One value a channel, which is dim 1 of the image.
Tensor OfChannels(const Tensor& values, const Tensor& image) {
  std::vector<int64_t> sizes(image.dim(), 1);
  sizes[1] = image.size(1);
  return values.to(at::kDouble).view(sizes);
}

Tensor SumOfChannels(const Tensor& image) { return image.transpose(0, 1).flatten(1).sum(1); }

Tensors ImagesOfChannels(Source& source, at::ScalarType dtype) {
  return {source.Random({4, 3, 2, 5}, dtype), source.Random({6, 3}, dtype),
          source.Random({3, 4, 5}, dtype).transpose(0, 1)};
}

// (gradOut, input, mean, invstd, weight, inputG, weightG, biasG)
std::vector<Args> ReductionsOfGradients(Source& source, at::ScalarType dtype) {
  std::vector<Args> inputs;
  for (const Tensor& image : ImagesOfChannels(source, dtype)) {
    for (const auto& asked : std::vector<std::array<bool, 3>>{
             {true, true, true}, {true, false, false}, {false, true, true}}) {
      inputs.push_back({source.Random(image.sizes(), dtype), image, source.Random({3}, at::kFloat),
                        source.Random({3}, at::kFloat, 0.5, 2), source.Random({3}, at::kFloat),
                        asked[0], asked[1], asked[2]});
    }
  }
  return inputs;
}

Args ReducedGradients(const In& in) {
  const Tensor dy = Doubles(in, 0), x = Doubles(in, 1);
  const Tensor sum = SumOfChannels(dy), product = SumOfChannels(dy * (x - OfChannels(in[2], x)));
  const auto asked = [&](int flag, const Tensor& result) {
    return in.flag(flag) ? result.to(at::kFloat) : Tensor();
  };
  return {asked(5, sum), asked(5, product), asked(6, product * Doubles(in, 3)), asked(7, sum)};
}

// (gradOut, input, mean, invstd, weight?, sumDy, sumDyXmu, counter)
std::vector<Args> ElementGradients(Source& source, at::ScalarType dtype) {
  std::vector<Args> inputs;
  for (const Tensor& image : ImagesOfChannels(source, dtype)) {
    const auto channels = [&](double low, double high) {
      return source.Random({3}, at::kFloat, low, high);
    };
    for (bool weighted : {true, false}) {
      inputs.push_back({source.Random(image.sizes(), dtype), image, channels(-1, 1),
                        channels(0.5, 2), weighted ? Arg(channels(-2, 2)) : Arg(Null{}),
                        channels(-9, 9), channels(-9, 9), at::tensor({40, 24}, at::kInt)});
    }
  }
  return inputs;
}

Tensor ElementGradient(const In& in) {
  const Tensor dy = Doubles(in, 0), x = Doubles(in, 1);
  const double count = in[7].sum().item().toDouble();
  const auto formula = [count](double dy, double x, double mean, double invstd, double weight,
                               double sum, double product) {
    const double normal = (x - mean) * invstd;
    return (dy - sum / count - normal * invstd * product / count) * invstd * weight;
  };
  const Tensor weight = in.maybe(4) ? OfChannels(in[4], x) : at::ones({}, at::kDouble);
  return Formula(formula, dy, x, OfChannels(in[2], x), OfChannels(in[3], x), weight,
                 OfChannels(in[5], x), OfChannels(in[6], x))
      .to(in[1].scalar_type());
}

// Mean and mean of squares of all devices, by which statistics are worked out.
struct Moments {
  Tensor mean, square;
  double count;
};

Tensor BiasedVariance(const Moments& m) { return m.square - m.mean * m.mean; }

// The new running statistics. Their variance is that of a sample.
Tensor BlendedMean(const Tensor& running, const Moments& m, double momentum) {
  return running.to(at::kDouble) * (1 - momentum) + m.mean * momentum;
}

Tensor BlendedVariance(const Tensor& running, const Moments& m, double momentum) {
  const Tensor sample = BiasedVariance(m) * (m.count / (m.count - 1));
  return running.to(at::kDouble) * (1 - momentum) + sample * momentum;
}

// (input, mean, invstd, runningMean?, runningVar?, momentum, eps, counts)
std::vector<Args> StatisticsOfDevices(Source& source, at::ScalarType dtype) {
  std::vector<Args> inputs;
  for (bool running : {true, false}) {
    const auto kept = [&](double low, double high) {
      return running ? Arg(source.Random({3}, at::kFloat, low, high)) : Arg(Null{});
    };
    inputs.push_back({source.Random({4, 3, 2, 5}, dtype), source.Random({2, 3}, at::kFloat),
                      source.Random({2, 3}, at::kFloat, 0.5, 2), kept(-1, 1), kept(0.5, 2), 0.1,
                      1e-3, at::tensor({40, 24}, at::kFloat)});
  }
  return inputs;
}

Args GatheredByCounts(const In& in) {
  const Tensor mean = Doubles(in, 1), counts = Doubles(in, 7).unsqueeze(1);
  const double eps = in.real(6), momentum = in.real(5), total = counts.sum().item<double>();
  const Tensor variance =
      Formula([=](double invstd) { return 1 / (invstd * invstd) - eps; }, in[2]);
  const Moments m = {(mean * counts).sum(0) / total,
                     ((variance + mean * mean) * counts).sum(0) / total, total};
  const Tensor invstd =
      Formula([=](double v) { return 1 / std::sqrt(v + eps); }, BiasedVariance(m));
  const auto blended = [&](int i, auto blend) {
    return in.maybe(i) ? blend(in[i], m, momentum).to(at::kFloat) : Tensor();
  };
  return {blended(3, BlendedMean), blended(4, BlendedVariance), m.mean.to(at::kFloat),
          invstd.to(at::kFloat)};
}

// (totalSum, totalSquareSum, sampleCount, mean, variance, momentum, eps)
Args GatheredBySums(const In& in) {
  const double total = in[2].sum().item().toDouble(), momentum = in.real(5), eps = in.real(6);
  const Moments m = {Doubles(in, 0).sum(0) / total, Doubles(in, 1).sum(0) / total, total};
  const Tensor invstd =
      Formula([=](double v) { return 1 / std::sqrt(v + eps); }, BiasedVariance(m));
  return {BlendedMean(in[3], m, momentum).to(at::kFloat),
          BlendedVariance(in[4], m, momentum).to(at::kFloat), m.mean.to(at::kFloat),
          invstd.to(at::kFloat)};
}

// (x, gx, beta, gamma, alpha, epsilon): mean and deviation of the rows of alpha x + gx
std::tuple<Tensor, Tensor, Tensor> DeepNormOfRows(const In& in) {
  const int64_t width = in[3].numel();
  const Tensor sum = (Doubles(in, 0) * in.real(4) + Doubles(in, 1)).contiguous();
  const int64_t rows = sum.numel() / width;
  std::vector<int64_t> sizes = in[0].sizes().vec();
  for (int64_t d = in[0].dim() - in[3].dim(); d < in[0].dim(); ++d) sizes[d] = 1;
  const Tensor mean = at::empty({rows}, at::kDouble), rstd = at::empty({rows}, at::kDouble);
  const Tensor y = at::empty({rows, width}, at::kDouble);
  const Tensor gamma = Doubles(in, 3).flatten(), beta = Doubles(in, 2).flatten();
  for (int64_t row = 0; row < rows; ++row) {
    const double* values = sum.data_ptr<double>() + row * width;
    double total = 0, spread = 0;
    for (int64_t i = 0; i < width; ++i) total += values[i];
    const double centre = total / static_cast<double>(width);
    for (int64_t i = 0; i < width; ++i) spread += (values[i] - centre) * (values[i] - centre);
    const double scale = 1 / std::sqrt(spread / static_cast<double>(width) + in.real(5));
    mean[row] = centre;
    rstd[row] = scale;
    for (int64_t i = 0; i < width; ++i) y[row][i] = (values[i] - centre) * scale;
  }
  return {mean.view(sizes).to(at::kFloat), rstd.view(sizes).to(at::kFloat),
          (y * gamma + beta).view(in[0].sizes()).to(in[0].scalar_type())};
}

// (gradHy?, gradC?, cx, cy, storage, hasBias): the storage holds the gates after their functions.
// The library differentiates the cell from the gates before their functions.
Args LstmCellGradients(const In& in) {
  const at::AutoGradMode enabled(true);
  const Tensors gates = Doubles(in, 4).chunk(4, 1);
  const auto leaf = [](const Tensor& tensor) { return tensor.detach().clone().requires_grad_(); };
  const auto before_sigmoid = [&](const Tensor& gate) { return leaf((gate / (1 - gate)).log()); };
  const Tensor i = before_sigmoid(gates[0]), f = before_sigmoid(gates[1]);
  const Tensor g = leaf(at::atanh(gates[2])), o = before_sigmoid(gates[3]);
  const Tensor cx = leaf(Doubles(in, 2));
  const Tensor cy = at::sigmoid(f) * cx + at::sigmoid(i) * at::tanh(g);
  const Tensor hy = at::sigmoid(o) * at::tanh(cy);
  Tensor goal = at::zeros({}, at::kDouble);
  if (in.maybe(0)) goal = goal + (hy * Doubles(in, 0)).sum();
  if (in.maybe(1)) goal = goal + (cy * Doubles(in, 1)).sum();
  goal.backward();
  const auto of = [](const Tensor& tensor) {
    return tensor.grad().defined() ? tensor.grad() : at::zeros_like(tensor);
  };
  const Tensor result = at::cat({of(i), of(f), of(g), of(o)}, 1);
  const at::ScalarType dtype = in[2].scalar_type();
  return {result.to(dtype), of(cx).to(dtype), in.flag(5) ? result.sum(0).to(dtype) : Tensor()};
}

std::vector<Args> LstmCells(Source& source, at::ScalarType dtype) {
  std::vector<Args> inputs;
  for (bool bias : {true, false}) {
    for (int given : {1, 2, 3}) {
      const Tensor cx = source.Random({3, 4}, dtype, -1, 1);
      const Tensor gate = source.Random({3, 8}, dtype, 0.1, 0.9);
      const Tensor candidate = source.Random({3, 4}, dtype, -0.9, 0.9);
      const Tensor out = source.Random({3, 4}, dtype, 0.1, 0.9);
      const Tensors parts = gate.chunk(2, 1);
      const auto gradient = [&](int bit) {
        return (given & bit) != 0 ? Arg(source.Random({3, 4}, dtype)) : Arg(Null{});
      };
      inputs.push_back({gradient(1), gradient(2), cx, parts[1] * cx + parts[0] * candidate,
                        at::cat({gate, candidate, out}, 1), bias});
    }
  }
  return inputs;
}

// The element that each one is turned with, and its sign, by the name of the mode.
std::pair<int64_t, double> Partner(int64_t i, int64_t width, const std::string& mode) {
  if (mode == "interleave") return {i ^ 1, i % 2 == 0 ? -1 : 1};
  const int64_t part = mode == "quarter" ? width / 4 : width / 2;
  return i / part % 2 == 0 ? std::pair<int64_t, double>{i + part, -1}
                           : std::pair<int64_t, double>{i - part, 1};
}

Tensor Turned(const Tensor& x, const Tensor& cosine, const Tensor& sine, const std::string& mode) {
  const Tensor wide = x.to(at::kDouble), result = at::empty(x.sizes(), at::kDouble);
  const Tensor c = cosine.to(at::kDouble).expand_as(x), s = sine.to(at::kDouble).expand_as(x);
  for (int64_t i = 0; i < x.size(-1); ++i) {
    const auto [other, sign] = Partner(i, x.size(-1), mode);
    result.select(-1, i).copy_(wide.select(-1, i) * c.select(-1, i) +
                               sign * wide.select(-1, other) * s.select(-1, i));
  }
  return result.to(x.scalar_type());
}

// (query, key, cos, sin, layout 1: BSND, [mode])
Inputs QueriesAndKeys(std::vector<const char*> modes) {
  return [modes](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs;
    for (const char* mode : modes) {
      for (int64_t heads : {2, 1}) {
        Args args = {source.Random({2, 5, 4, 8}, dtype), source.Random({2, 5, heads, 8}, dtype),
                     source.Random({2, 5, 1, 8}, dtype, -1, 1),
                     source.Random({2, 5, 1, 8}, dtype, -1, 1), int64_t{1}};
        if (mode != nullptr) args.push_back(mode);
        inputs.push_back(args);
      }
    }
    return inputs;
  };
}

Args TurnedInPlace(const In& in) {
  const std::string mode = in.count() > 5 ? in.text(5) : "half";
  return {Turned(in[0], in[2], in[3], mode), Turned(in[1], in[2], in[3], mode)};
}

}  // namespace

Rows NetworkRows() {
  const Dtypes dtypes = {at::kFloat, at::kHalf, at::kBFloat16};
  Rows rows = {
      {"aclnnBatchNormReduceBackward", ReductionsOfGradients, dtypes, ReducedGradients},
      {"aclnnBatchNormElemtBackward", ElementGradients, dtypes, ElementGradient},
      {"aclnnBatchNormGatherStatsWithCounts", StatisticsOfDevices, dtypes, GatheredByCounts},
      {"aclnnSyncBatchNormGatherStats",
       [](Source& source, at::ScalarType dtype) {
         return std::vector<Args>{{source.Random({2, 3}, dtype, -20, 20),
                                   source.Random({2, 3}, dtype, 60, 90),
                                   at::tensor({40, 24}, at::kInt), source.Random({3}, at::kFloat),
                                   source.Random({3}, at::kFloat, 0.5, 2), 0.1, 1e-3}};
       },
       dtypes, GatheredBySums},
      {"aclnnDeepNorm",
       [](Source& source, at::ScalarType dtype) {
         return std::vector<Args>{
             {source.Random({4, 6}, dtype), source.Random({4, 6}, dtype), source.Random({6}, dtype),
              source.Random({6}, dtype), 0.3, 1e-6},
             {source.Random({3, 2, 8}, dtype).transpose(0, 1), source.Random({2, 3, 8}, dtype),
              source.Random({8}, dtype), source.Random({8}, dtype), 2.5, 1e-5}};
       },
       dtypes, DeepNormOfRows},
      {"aclnnThnnFusedLstmCellBackward", LstmCells, dtypes, LstmCellGradients},
      {"aclnnApplyRotaryPosEmb", QueriesAndKeys({nullptr}), dtypes, TurnedInPlace},
      {"aclnnApplyRotaryPosEmbV2", QueriesAndKeys({"half", "interleave", "quarter"}), dtypes,
       TurnedInPlace},
  };
  for (Row& row : rows) {
    row.tolerance = kInFloats;
    row.inplace = false;
  }
  return rows;
}

}  // namespace acltape::opapi::grid
