// Activations of one half of a tensor times the other half, and softmax of windows, against
// formulas of doubles.
#include <cmath>

#include "tests/opapi/grid/formula.h"

namespace acltape::opapi::grid {
namespace {

const Tolerance kGate = {8, 1e-6, false, "the parts of the product are rounded to float32"};

double Gelu(double x, bool tanh) {
  if (!tanh) return 0.5 * x * (1 + std::erf(x / M_SQRT2));
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

double GeluSlope(double x, bool tanh) {
  if (!tanh) {
    return 0.5 * (1 + std::erf(x / M_SQRT2)) + x * std::exp(-x * x / 2) / std::sqrt(2 * M_PI);
  }
  const double factor = std::sqrt(2 / M_PI);
  const double t = std::tanh(factor * (x + 0.044715 * x * x * x));
  return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * factor * (1 + 3 * 0.044715 * x * x);
}

struct Split {
  Tensor tensor;
  int64_t dim;
};

// Tensors that can be cut in two along the dim: dense, transposed, empty, with gaps.
std::vector<Split> Splits(Source& source, at::ScalarType dtype) {
  return {
      {source.Random({6}, dtype), 0},
      {source.Random({3, 8}, dtype), -1},
      {source.Random({4, 5}, dtype), 0},
      {source.Random({8, 3}, dtype).t(), 1},
      {source.Random({2, 6, 5}, dtype), 1},
      {source.Random({0, 4}, dtype), 1},
      {source.Random({5, 22}, dtype).slice(1, 3, 19, 2), 1},
  };
}

// The same, cut along their last dim only.
Tensors EvenRows(Source& source, at::ScalarType dtype) {
  return {source.Random({3, 8}, dtype), source.Random({2, 3, 6}, dtype).transpose(0, 1),
          source.Random({6}, dtype), source.Random({0, 4}, dtype),
          source.Random({5, 22}, dtype).slice(1, 3, 19, 2)};
}

Tensor HalfLike(Source& source, const Split& split) {
  std::vector<int64_t> sizes = split.tensor.sizes().vec();
  sizes[split.dim < 0 ? split.dim + sizes.size() : split.dim] /= 2;
  return source.Random(sizes, split.tensor.scalar_type());
}

// Each split as `tensors` makes it, then (dim, approximate), with activateLeft after them if
// `chosen`
template <typename Fn>
Inputs OverSplits(bool chosen, Fn tensors) {
  return [=](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs;
    for (const Split& split : Splits(source, dtype)) {
      for (int64_t approximate : {0, 1}) {
        for (bool left : {false, true}) {
          if (left && !chosen) continue;
          Args args = tensors(source, split);
          args.insert(args.end(), {split.dim, approximate});
          if (chosen) args.push_back(left);
          inputs.push_back(args);
        }
      }
    }
    return inputs;
  };
}

// (self, dim, approximate), with activateLeft after them if `chosen`
Inputs Gates(bool chosen) {
  return OverSplits(chosen,
                    [](Source& /*source*/, const Split& split) -> Args { return {split.tensor}; });
}

// (gradOutput, self, gelu, dim, approximate), with activateLeft after them if `chosen`
Inputs GateGradients(bool chosen) {
  return OverSplits(chosen, [](Source& source, const Split& split) -> Args {
    return {HalfLike(source, split), split.tensor, HalfLike(source, split)};
  });
}

std::tuple<Tensor, Tensor> GatedByGelu(const In& in, bool left) {
  const Tensors halves = in[0].chunk(2, in.integer(1));
  const bool tanh = in.integer(2) == 1;
  const at::ScalarType dtype = in[0].scalar_type();
  const Tensor gelu = Formula([tanh](double x) { return Gelu(x, tanh); }, halves[left ? 0 : 1]);
  return {(gelu * halves[left ? 1 : 0].to(at::kDouble)).to(dtype), gelu.to(dtype)};
}

Tensor GradientOfGate(const In& in, bool left) {
  const Tensors halves = in[1].chunk(2, in.integer(3));
  const bool tanh = in.integer(4) == 1;
  const Tensor of_activated =
      Formula([tanh](double dy, double x, double y) { return dy * y * GeluSlope(x, tanh); }, in[0],
              halves[left ? 0 : 1], halves[left ? 1 : 0]);
  const Tensor of_other = Formula([](double dy, double gelu) { return dy * gelu; }, in[0], in[2]);
  const Tensors parts = left ? Tensors{of_activated, of_other} : Tensors{of_other, of_activated};
  return at::cat(parts, in.integer(3)).to(in[1].scalar_type());
}

// (x, groupIndex, dim, alpha, limit, bias, interleaved), element by element
Tensor ClippedByHand(const In& in) {
  const int64_t dim = in.integer(2) < 0 ? in.integer(2) + in[0].dim() : in.integer(2);
  const double alpha = in.real(3), limit = in.real(4), bias = in.real(5);
  const Tensor rows = in[0].to(at::kDouble).contiguous().flatten(dim);
  std::vector<int64_t> sizes = in[0].sizes().vec();
  sizes[dim] /= 2;
  const Tensor result = at::empty(sizes, at::kDouble);
  const int64_t half = rows.size(-1) / 2;
  const auto* x = rows.data_ptr<double>();
  auto* y = result.data_ptr<double>();
  for (int64_t i = 0; i < result.numel(); ++i) {
    const double* row = x + i / half * 2 * half;
    const int64_t k = i % half;
    const double a = std::fmin(in.flag(6) ? row[2 * k] : row[k], limit);
    const double b = in.flag(6) ? row[2 * k + 1] : row[half + k];
    y[i] = a / (1 + std::exp(-alpha * a)) * (std::fmax(std::fmin(b, limit), -limit) + bias);
  }
  return result.to(in[0].scalar_type());
}

// (gradY, x, groupIndex, dim, alpha, limit, bias, interleaved), element by element
Tensor ClippedBackByHand(const In& in) {
  const int64_t dim = in.integer(3) < 0 ? in.integer(3) + in[1].dim() : in.integer(3);
  const double alpha = in.real(4), limit = in.real(5), bias = in.real(6);
  const Tensor rows = in[1].to(at::kDouble).contiguous().flatten(dim);
  const Tensor given = in[0].to(at::kDouble).contiguous();
  const Tensor result = at::zeros(in[1].sizes(), at::kDouble);
  const int64_t half = rows.size(-1) / 2;
  const auto* dy = given.data_ptr<double>();
  for (int64_t i = 0; i < given.numel(); ++i) {
    const int64_t row = i / half * 2 * half, k = i % half;
    const int64_t left = row + (in.flag(7) ? 2 * k : k);
    const int64_t right = row + (in.flag(7) ? 2 * k + 1 : half + k);
    const double a = rows.data_ptr<double>()[left], b = rows.data_ptr<double>()[right];
    const double gate = std::fmin(a, limit), other = std::fmax(std::fmin(b, limit), -limit);
    const double s = 1 / (1 + std::exp(-alpha * gate));
    auto* dx = result.data_ptr<double>();
    if (a <= limit) dx[left] = dy[i] * (other + bias) * s * (1 + alpha * gate * (1 - s));
    if (std::fabs(b) <= limit) dx[right] = dy[i] * gate * s;
  }
  return result.to(in[1].scalar_type());
}

// beta tanh(gate / beta) sigmoid(gate) times the other half, bounded in the same way.
double Situ(double gate, double other, double beta, double linear) {
  const double bounded = linear > 0 ? linear * std::tanh(other / linear) : other;
  return beta * std::tanh(gate / beta) / (1 + std::exp(-gate)) * bounded;
}

// (x, dim, beta, linearBeta, activateLeft)
Tensor SituByHand(const In& in) {
  const Tensors halves = in[0].chunk(2, in.integer(1));
  const double beta = in.real(2), linear = in.real(3);
  const bool left = in.flag(4);
  return Formula([=](double gate, double other) { return Situ(gate, other, beta, linear); },
                 halves[left ? 0 : 1], halves[left ? 1 : 0])
      .to(in[0].scalar_type());
}

// (gradY, x, dim, beta, linearBeta, activateLeft): differences of the forward formula
Tensor SituBackByHand(const In& in) {
  constexpr double kStep = 1e-6;
  const Tensors halves = in[1].chunk(2, in.integer(2));
  const double beta = in.real(3), linear = in.real(4);
  const bool left = in.flag(5);
  const Tensor gate = halves[left ? 0 : 1], other = halves[left ? 1 : 0];
  const Tensor of_gate = Formula(
      [=](double dy, double a, double b) {
        return dy * (Situ(a + kStep, b, beta, linear) - Situ(a - kStep, b, beta, linear)) /
               (2 * kStep);
      },
      in[0], gate, other);
  const Tensor of_other = Formula(
      [=](double dy, double a, double b) {
        return dy * (Situ(a, b + kStep, beta, linear) - Situ(a, b - kStep, beta, linear)) /
               (2 * kStep);
      },
      in[0], gate, other);
  const Tensors parts = left ? Tensors{of_gate, of_other} : Tensors{of_other, of_gate};
  return at::cat(parts, in.integer(2)).to(in[1].scalar_type());
}

// (x, dim, beta, linearBeta, activateLeft), or with a gradient in front
Inputs Situs(bool gradient) {
  return [gradient](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs;
    for (const Split& split : Splits(source, dtype)) {
      for (double linear : {0.0, 1.5}) {
        Args args = {split.tensor, split.dim, linear == 0 ? 1.0 : 2.5, linear,
                     inputs.size() % 2 == 0};
        if (gradient) args.insert(args.begin(), HalfLike(source, split));
        inputs.push_back(args);
      }
    }
    return inputs;
  };
}

// (x, mask?, bias, scale), each window with the mask of its place and the bias of its head
Tensor WindowsByHand(const In& in) {
  const Tensor x = in[0].to(at::kDouble);
  const int64_t heads = x.size(-3), rows = x.size(-2), columns = x.size(-1);
  const Tensor windows = x.reshape({-1, heads, rows, columns});
  const Tensor bias = in[2].to(at::kDouble).reshape({heads, rows, columns});
  Tensors results;
  for (int64_t i = 0; i < windows.size(0); ++i) {
    Tensor scores = windows[i] * in.real(3) + bias;
    if (in.maybe(1)) {
      const Tensor masks = in[1].to(at::kDouble).reshape({-1, rows, columns});
      scores = scores + masks[i % masks.size(0)];
    }
    const Tensor powers = (scores - scores.amax({-1}, true)).exp();
    results.push_back(powers / powers.sum({-1}, true));
  }
  return at::stack(results).view(x.sizes()).to(in[0].scalar_type());
}

}  // namespace

Rows SplitRows() {
  const Dtypes floats = {at::kFloat, at::kHalf, at::kBFloat16};
  Rows rows = {
      {"aclnnGeGlu", Gates(false), floats, [](const In& in) { return GatedByGelu(in, false); },
       kGate},
      {"aclnnGeGluV3", Gates(true), floats,
       [](const In& in) { return GatedByGelu(in, in.flag(3)); }, kGate},
      {"aclnnGeGluBackward", GateGradients(false), floats,
       [](const In& in) { return GradientOfGate(in, false); }, kGate},
      {"aclnnGeGluV3Backward", GateGradients(true), floats,
       [](const In& in) { return GradientOfGate(in, in.flag(5)); }, kGate},
      {"aclnnGeluMul",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (const Tensor& tensor : EvenRows(source, dtype)) {
           inputs.push_back({tensor, "none"});
           inputs.push_back({tensor, "tanh"});
           inputs.push_back({tensor, Null{}});
         }
         return inputs;
       },
       floats,
       [](const In& in) {
         const auto* name = std::get_if<const char*>(&in.arg(1));
         const bool tanh = name != nullptr && std::string(*name) == "tanh";
         const Tensors halves = in[0].chunk(2, -1);
         return Formula([tanh](double x, double y) { return Gelu(x, tanh) * y; }, halves[0],
                        halves[1])
             .to(in[0].scalar_type());
       },
       kGate},
      {"aclnnFatreluMul",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (const Tensor& tensor : EvenRows(source, dtype)) {
           inputs.push_back({tensor, source.Random({1}, dtype, -1, 1)});
           inputs.push_back({tensor, source.Random({}, dtype, -1, 1)});
         }
         return inputs;
       },
       floats,
       [](const In& in) {
         const Tensors halves = in[0].chunk(2, -1);
         return Formula([](double x, double y, double t) { return x < t ? 0 : x * y; }, halves[0],
                        halves[1], in[1].reshape({}))
             .to(in[0].scalar_type());
       },
       kFormula},
      {"aclnnMaskedSoftmaxWithRelPosBias",
       [](Source& source, at::ScalarType dtype) {
         const auto of = [&](at::IntArrayRef sizes) { return source.Random(sizes, dtype); };
         return std::vector<Args>{
             {of({6, 2, 3, 5}), of({3, 3, 5}), of({2, 3, 5}), 0.5, int64_t{0}},
             {of({2, 3, 2, 4, 6}), of({3, 1, 4, 6}), of({1, 2, 4, 6}), 1.0, int64_t{0}},
             {of({3, 2, 2, 4, 6}).transpose(0, 1), of({1, 3, 1, 4, 6}), of({1, 1, 2, 4, 6}), 2.0,
              int64_t{0}},
             {of({4, 2, 3, 5}), Null{}, of({2, 3, 5}), 1.0, int64_t{0}}};
       },
       floats, WindowsByHand, kGate},
      {"aclnnClippedSwiglu",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (const Split& split : Splits(source, dtype)) {
           for (bool interleaved : {false, true}) {
             inputs.push_back({split.tensor, Null{}, split.dim, 1.702, 2.0, 1.0, interleaved});
           }
         }
         return inputs;
       },
       floats, ClippedByHand, kGate},
      {"aclnnClippedSwigluGrad",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (const Split& split : Splits(source, dtype)) {
           for (bool interleaved : {false, true}) {
             inputs.push_back({HalfLike(source, split), split.tensor, Null{}, split.dim, 1.702, 2.0,
                               1.0, interleaved});
           }
         }
         return inputs;
       },
       floats, ClippedBackByHand, kGate},
      {"aclnnSituGlu", Situs(false), floats, SituByHand, kGate},
      {"aclnnSituGluGrad", Situs(true), floats, SituBackByHand, kGate},
  };
  for (Row& row : rows) row.inplace = false;
  return rows;
}

}  // namespace acltape::opapi::grid
