// Operators that sample programs call: lists that become one tensor, signs as bits, sums over
// segments, scales, elements among others, products and rows of experts. References are loops or
// formulas of doubles.
#include <cmath>

#include "tests/opapi/grid/formula.h"

namespace acltape::opapi::grid {
namespace {

using Ints = std::vector<int64_t>;

const Tolerance kSums = {16, 1e-5, false, "sums of another order, rounded to float32"};
const Dtypes kPlainFloats = {at::kFloat, at::kHalf, at::kBFloat16};

// Lists of one shape: dense, transposed and with gaps; without dims; empty; one tensor alone.
Inputs ListsOfOneShape() {
  return [](Source& source, at::ScalarType dtype) {
    return std::vector<Args>{
        {Tensors{source.Random({4, 6}, dtype), source.Random({6, 4}, dtype).t(),
                 source.Random({4, 17}, dtype).slice(1, 2, 14, 2)}},
        {Tensors{source.Random({}, dtype), source.Random({}, dtype)}},
        {Tensors{source.Random({2, 0}, dtype), source.Random({2, 0}, dtype)}},
        {Tensors{source.Random({7}, dtype)}},
    };
  };
}

// Lists whose members broadcast, in front of those of one shape.
Inputs ListsThatBroadcast() {
  return [](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs = {
        {Tensors{source.Random({5, 1}, dtype), source.Random({7}, dtype),
                 source.Random({2, 5, 7}, dtype)}},
        {Tensors{source.Random({}, dtype), source.Random({3, 4}, dtype)}},
    };
    for (Args& args : ListsOfOneShape()(source, dtype)) inputs.push_back(std::move(args));
    return inputs;
  };
}

Tensor SumOfList(const In& in) {
  return at::stack(at::broadcast_tensors(in.list(0)))
      .to(at::kDouble)
      .sum(0)
      .to(in.list(0)[0].scalar_type());
}

Rows Lists() {
  const Dtypes counted = {at::kFloat, at::kHalf, at::kBFloat16, at::kInt, at::kLong};
  const Dtypes ordered = {at::kFloat, at::kHalf, at::kBFloat16, at::kChar, at::kInt, at::kLong};
  return {
      {"aclnnAddN", ListsOfOneShape(), counted, SumOfList, kFormula},
      {"aclnnSum",
       ListsThatBroadcast(),
       {at::kFloat, at::kHalf, at::kChar, at::kInt, at::kByte},
       SumOfList,
       kFormula},
      {"aclnnMaxN", ListsThatBroadcast(), ordered,
       [](const In& in) { return at::stack(at::broadcast_tensors(in.list(0))).amax(0); }},
      {"aclnnMinN", ListsThatBroadcast(), ordered,
       [](const In& in) { return at::stack(at::broadcast_tensors(in.list(0))).amin(0); }},
  };
}

// (self, size): bit i of a byte says that element i is not negative.
Tensor PackedByHand(const In& in) {
  const Tensor numbers = in[0].to(at::kFloat).contiguous();
  const auto* x = numbers.data_ptr<float>();
  const int64_t bytes = (numbers.numel() + 7) / 8;
  const Tensor packed = at::zeros({bytes}, at::kByte);
  for (int64_t i = 0; i < numbers.numel(); ++i) {
    if (x[i] >= 0) packed.data_ptr<uint8_t>()[i / 8] |= static_cast<uint8_t>(1 << i % 8);
  }
  return packed.view({in.integer(1), -1});
}

Tensor UnpackedByHand(const In& in) {
  const Tensor bytes = in[0].contiguous();
  const Tensor signs = at::empty({bytes.numel() * 8}, at::kFloat);
  for (int64_t i = 0; i < signs.numel(); ++i) {
    const bool set = (bytes.data_ptr<uint8_t>()[i / 8] >> i % 8 & 1) != 0;
    signs.data_ptr<float>()[i] = set ? 1 : -1;
  }
  return signs.view({in.integer(1), -1}).to(in.dtype(2));
}

Rows Bits() {
  return {
      {"aclnnSignBitsPack",
       [](Source& source, at::ScalarType dtype) {
         // The example of the vendor's documentation, whose bytes are 159 and 15.
         const Tensor documented =
             at::tensor({5, 4, 3, 2, 0, -1, -2, 4, 3, 2, 1, 0, -1, -2}, at::kFloat).to(dtype);
         return std::vector<Args>{{documented, int64_t{2}},
                                  {source.Random({64}, dtype), int64_t{4}},
                                  {source.Random({50}, dtype).slice(0, 1, 48, 2), int64_t{1}},
                                  {source.Random({1}, dtype), int64_t{1}}};
       },
       {at::kFloat, at::kHalf},
       PackedByHand},
      {"aclnnSignBitsUnpack",
       [](Source& source, at::ScalarType dtype) {
         return std::vector<Args>{
             {source.Random({2}, dtype, 0, 255), int64_t{2}, at::kFloat},
             {source.Random({9}, dtype, 0, 255), int64_t{3}, at::kHalf},
             {source.Random({9}, dtype, 0, 255).slice(0, 1, 9, 2), int64_t{4}, at::kFloat}};
       },
       {at::kByte},
       UnpackedByHand},
  };
}

// exp of the sums of elements j + 1 to i, for i and j of each row
Tensor SegmentsByHand(const In& in) {
  const Tensor x = in[0].to(at::kDouble);
  std::vector<int64_t> sizes = x.sizes().vec();
  const int64_t count = sizes.back();
  sizes.push_back(count);
  const Tensor result = at::zeros(sizes, at::kDouble);
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t j = 0; j <= i; ++j) {
      result.select(-2, i).select(-1, j).copy_(x.slice(-1, j + 1, i + 1).sum(-1).exp());
    }
  }
  return result.to(in[0].scalar_type());
}

// Element k is part of the sums of which j < k <= i.
Tensor SegmentGradientsByHand(const In& in) {
  const Tensor weighted = in[0].to(at::kDouble) * in[1].to(at::kDouble);
  const int64_t count = weighted.size(-1);
  std::vector<int64_t> sizes = weighted.sizes().vec();
  sizes.pop_back();
  const Tensor result = at::zeros(sizes, at::kDouble);
  for (int64_t k = 0; k < count; ++k) {
    result.select(-1, k).copy_(weighted.slice(-2, k, count).slice(-1, 0, k).sum({-2, -1}));
  }
  return result.to(in[0].scalar_type());
}

Tensor GroupSumsByHand(const In& in) {
  const Tensor rows = in[0].to(at::kDouble);
  if (!in.maybe(1)) return rows.sum(1).to(in[0].scalar_type());
  const Tensor ends = in[1].to(at::kLong).contiguous();
  Tensors sums;
  int64_t begin = 0;
  for (int64_t i = 0; i < ends.numel(); ++i) {
    const int64_t end = ends.data_ptr<int64_t>()[i];
    sums.push_back(rows.slice(0, begin, end).sum(0));
    begin = end;
  }
  return at::stack(sums).to(in[0].scalar_type());
}

Rows Segments() {
  return {
      {"aclnnExpSegsum",
       [](Source& source, at::ScalarType dtype) {
         return std::vector<Args>{{source.Random({2, 3, 5}, dtype)},
                                  {source.Random({2, 1, 3, 4}, dtype)},
                                  {source.Random({3, 4, 2}, dtype).transpose(0, 2)},
                                  {source.Random({2, 0, 3}, dtype)}};
       },
       kPlainFloats, SegmentsByHand, kSums, -1, 1},
      {"aclnnExpSegsumBackward",
       [](Source& source, at::ScalarType dtype) {
         return std::vector<Args>{
             {source.Random({2, 3, 5, 5}, dtype), source.Random({2, 3, 5, 5}, dtype)},
             {source.Random({1, 2, 2, 4, 4}, dtype),
              source.Random({1, 2, 2, 4, 4}, dtype).transpose(-1, -2)},
             {source.Random({0, 3, 2, 2}, dtype), source.Random({0, 3, 2, 2}, dtype)}};
       },
       kPlainFloats, SegmentGradientsByHand, kSums},
      {"aclnnGroupedBiasAddGrad",
       [](Source& source, at::ScalarType dtype) {
         const Tensor ends = at::tensor({2, 2, 7, 9}, at::kLong);
         return std::vector<Args>{{source.Random({9, 5}, dtype), ends},
                                  {source.Random({5, 9}, dtype).t(), ends.to(at::kInt)},
                                  {source.Random({3, 4, 5}, dtype), Null{}},
                                  {source.Random({4, 3, 5}, dtype).transpose(0, 1), Null{}}};
       },
       kPlainFloats, GroupSumsByHand, kSums},
  };
}

// (x, scale, bias?, axis, numAxes, scaleFromBlob): the scale's dims begin at the axis.
Tensor ScaledByHand(const In& in) {
  const Tensor x = in[0];
  const int64_t axis = in.integer(3) < 0 ? in.integer(3) + x.dim() : in.integer(3);
  const int64_t axes = in[1].numel() == 1 ? 0 : in[1].dim();
  const auto spread = [&](const Tensor& given) {
    Tensor wide = axes == 0 ? given.reshape({}) : given;
    for (int64_t i = axis + axes; i < x.dim(); ++i) wide = wide.unsqueeze(-1);
    return wide.expand(x.sizes());
  };
  const Tensor bias = in.maybe(2) ? spread(in[2]) : at::zeros(x.sizes());
  return Formula([](double a, double s, double b) { return a * s + b; }, x, spread(in[1]), bias)
      .to(x.scalar_type());
}

Rows SoughtElements() {
  const auto among = [](bool scalar_first) {
    return [scalar_first](Source& source, at::ScalarType dtype) {
      std::vector<Args> inputs;
      for (const Tensor& view : source.Views(dtype)) {
        const at::Scalar number(inputs.size() % 3 == 0 ? 1.5 : 1.0);
        for (bool invert : {false, true}) {
          if (scalar_first) {
            inputs.push_back({number, view, false, invert});
          } else {
            inputs.push_back({view, number, true, invert});
          }
        }
      }
      return inputs;
    };
  };
  return {
      {"aclnnIsInTensorScalar", among(false), kNumbers,
       [](const In& in) {
         const double number = in.real(1);
         const bool invert = in.flag(3);
         return Formula([=](double x) { return (x == number) != invert; }, in[0]).to(at::kBool);
       }},
      {"aclnnIsInScalarTensor", among(true), kNumbers,
       [](const In& in) {
         const double number = in.real(0);
         const Tensor equal = Formula([=](double x) { return x == number; }, in[1]);
         return at::scalar_tensor((equal.sum().item<double>() > 0) != in.flag(3), at::kBool);
       }},
      {"aclnnScale",
       [](Source& source, at::ScalarType dtype) {
         const auto x = [&] { return source.Random({2, 3, 4, 5}, dtype); };
         const Tensor turned = source.Random({5, 4, 3, 2}, dtype).permute({3, 2, 1, 0});
         return std::vector<Args>{
             {x(), source.Random({3, 4}, dtype), source.Random({3, 4}, dtype), int64_t{1},
              int64_t{2}, true},
             {turned, source.Random({4, 5}, dtype), Null{}, int64_t{-2}, int64_t{-1}, true},
             {x(), source.Random({3}, dtype), source.Random({3}, dtype), int64_t{1}, int64_t{0},
              false},
             {x(), source.Random({1}, dtype), source.Random({1}, dtype), int64_t{2}, int64_t{0},
              true},
             {source.Random({0, 3}, dtype), source.Random({3}, dtype), Null{}, int64_t{1},
              int64_t{1}, true}};
       },
       kPlainFloats, ScaledByHand, kSums},
  };
}

// (A, B, C, alpha, beta, transA, transB)
Tensor ProductByHand(const In& in) {
  const Tensor a = in[0].to(at::kDouble), b = in[1].to(at::kDouble);
  const Tensor product = at::matmul(in.integer(5) != 0 ? a.t() : a, in.integer(6) != 0 ? b.t() : b);
  return (in.real(3) * product + in.real(4) * in[2].to(at::kDouble)).to(in[0].scalar_type());
}

// (self, weight, bias?, pad): each tap of the weight on its own
Tensor SequenceByHand(const In& in) {
  const int64_t pad = in.integer(3);
  const Tensor x = at::constant_pad_nd(in[0].to(at::kDouble), {0, 0, 0, 0, pad, pad}, 0);
  const Tensor weight = in[1].to(at::kDouble);
  const int64_t steps = x.size(0) - weight.size(0) + 1;
  Tensor sum = at::zeros({steps, x.size(1), weight.size(2)}, at::kDouble);
  for (int64_t k = 0; k < weight.size(0); ++k)
    sum += at::matmul(x.slice(0, k, k + steps), weight[k]);
  if (in.maybe(2)) sum += in[2].to(at::kDouble);
  return sum.to(in[0].scalar_type());
}

Rows Products() {
  return {
      {"aclnnGemm",
       [](Source& source, at::ScalarType dtype) {
         return std::vector<Args>{{source.Random({3, 4}, dtype), source.Random({4, 5}, dtype),
                                   source.Random({3, 5}, dtype), 1.5, 0.5, int64_t{0}, int64_t{0}},
                                  {source.Random({4, 3}, dtype), source.Random({4, 5}, dtype),
                                   source.Random({5}, dtype), 1.0, 2.0, int64_t{1}, int64_t{0}},
                                  {source.Random({4, 3}, dtype).t(), source.Random({5, 4}, dtype),
                                   source.Random({1, 5}, dtype), -1.0, 1.0, int64_t{0}, int64_t{1}},
                                  {source.Random({2, 0}, dtype), source.Random({0, 3}, dtype),
                                   source.Random({2, 3}, dtype), 1.0, 1.0, int64_t{0}, int64_t{0}}};
       },
       kPlainFloats, ProductByHand, kSums},
      {"aclnnConvTbc",
       [](Source& source, at::ScalarType dtype) {
         return std::vector<Args>{{source.Random({6, 2, 3}, dtype), source.Random({3, 3, 4}, dtype),
                                   source.Random({4}, dtype), int64_t{1}},
                                  {source.Random({2, 6, 3}, dtype).transpose(0, 1),
                                   source.Random({2, 3, 5}, dtype), Null{}, int64_t{0}},
                                  {source.Random({1, 1, 1}, dtype), source.Random({3, 1, 1}, dtype),
                                   source.Random({1}, dtype), int64_t{2}}};
       },
       kPlainFloats, SequenceByHand, kSums},
      {"aclnnMoeComputeExpertTokens",
       [](Source& source, at::ScalarType dtype) {
         const auto sorted = [&](int64_t count) {
           return std::get<0>(at::sort(source.Indices({count}, 5, dtype)));
         };
         return std::vector<Args>{{sorted(40), int64_t{5}},
                                  {sorted(3), int64_t{8}},
                                  {at::stack({sorted(6), sorted(6)}, 1).select(1, 0), int64_t{6}},
                                  {sorted(0), int64_t{2}}};
       },
       {at::kInt},
       [](const In& in) {
         const Tensor counts = at::bincount(in[0], {}, in.integer(1));
         return counts.cumsum(0).to(at::kInt);
       }},
  };
}

// (expandedX, x1, x2?, bias, scales, expandedRowIdx, expandedExpertIdx), number by number
Tensor FinalizedByHand(const In& in) {
  const Tensor expanded = in[0].to(at::kDouble), bias = in[3].to(at::kDouble);
  const Tensor scales = in[4].to(at::kDouble);
  Tensor sum = in[1].to(at::kDouble);
  if (in.maybe(2)) sum = sum + in[2].to(at::kDouble);
  sum = sum.clone();
  const int64_t tokens = scales.size(0);
  for (int64_t i = 0; i < tokens; ++i) {
    for (int64_t k = 0; k < scales.size(1); ++k) {
      const auto row = in[5][i + k * tokens].item<int64_t>();
      const auto expert = in[6][i][k].item<int64_t>();
      sum[i] += scales[i][k] * (expanded[row] + bias[expert]);
    }
  }
  return sum.to(in[0].scalar_type());
}

// (gradExpandedX, expandedRowIdx, topK, dropPadMode, activeNum): rows outside count nothing.
Tensor RoutedBackByHand(const In& in) {
  const int64_t k = in.integer(2), width = in[0].size(-1);
  const Tensor given = in[0].to(at::kDouble).reshape({-1, width});
  const Tensor sum = at::zeros({in[1].numel() / k, width}, at::kDouble);
  for (int64_t i = 0; i < in[1].numel(); ++i) {
    const auto row = in[1][i].item<int64_t>();
    if (row >= 0 && row < given.size(0)) sum[i / k] += given[row];
  }
  return sum.to(in[0].scalar_type());
}

// (gradY, expandedRowIdx, expandedX?, scales?, expertIdx?, bias?, dropPadMode, activeNum,
// expertNum, expertCapacity), row by row
Args FinalizedBackByHand(const In& in) {
  const Tensor dy = in[0].to(at::kDouble);
  const int64_t width = dy.size(1), count = in[1].numel(), k = count / dy.size(0);
  Ints sizes = {count, width};
  if (in.integer(6) == 1) sizes = {in.integer(8), in.integer(9), width};
  if (in.integer(6) == 0 && in.integer(7) > 0 && in.integer(7) < count) sizes[0] = in.integer(7);
  const Tensor of_x = at::zeros(sizes, at::kDouble), flat = of_x.view({-1, width});
  const Tensor of_scales = at::zeros({dy.size(0), k}, at::kDouble);
  for (int64_t i = 0; i < count; ++i) {
    const auto row = in[1][i].item<int64_t>();
    const bool there = row >= 0 && row < flat.size(0);
    Tensor scaled = dy[i / k];
    if (in.maybe(3)) {
      Tensor x = at::zeros({width}, at::kDouble);
      if (there) x = in[2].to(at::kDouble).reshape({-1, width})[row];
      if (in.maybe(5)) x = x + in[5].to(at::kDouble)[in[4][i / k][i % k].item<int64_t>()];
      of_scales[i / k][i % k] = (x * dy[i / k]).sum();
      scaled = scaled * in[3].to(at::kDouble)[i / k][i % k];
    }
    if (there) flat[row].copy_(scaled);
  }
  const at::ScalarType dtype = in[0].scalar_type();
  return {of_x.to(dtype), in.maybe(3) ? of_scales.to(dtype) : Tensor()};
}

// (grad, var, m, v, s, step, lr, emaDecay, beta1, beta2, eps, mode, biasCorrection, weightDecay)
std::tuple<Tensor, Tensor, Tensor, Tensor> SteppedByHand(const In& in) {
  const double lr = in.real(6), ema = in.real(7), beta1 = in.real(8), beta2 = in.real(9);
  const double eps = in.real(10), decay = in.real(13), step = in[5].item<double>();
  const bool in_gradient = in.integer(11) == 0, corrected = in.flag(12);
  const auto each = [&](int wanted) {
    const auto number = [=](double g, double var, double m, double v, double s) {
      if (in_gradient) g += decay * var;
      m = beta1 * m + (1 - beta1) * g;
      v = beta2 * v + (1 - beta2) * g * g;
      const double first = corrected ? m / (1 - std::pow(beta1, step)) : m;
      const double second = corrected ? v / (1 - std::pow(beta2, step)) : v;
      const double update = first / (std::sqrt(second) + eps) + (in_gradient ? 0 : decay * var);
      var -= lr * update;
      s = ema * s + (1 - ema) * var;
      return wanted == 0 ? var : wanted == 1 ? m : wanted == 2 ? v : s;
    };
    return Formula(number, in[0], in[1], in[2], in[3], in[4]).to(in[1].scalar_type());
  };
  return {each(0), each(1), each(2), each(3)};
}

// (xyz1, xyz2, idx1, idx2, gradDist1, gradDist2), point by point
std::tuple<Tensor, Tensor> NearestByHand(const In& in) {
  const Tensor a = in[0].to(at::kDouble), b = in[1].to(at::kDouble);
  const Tensor of_a = at::zeros_like(a), of_b = at::zeros_like(b);
  const auto pull = [](const Tensor& points, const Tensor& others, const Tensor& nearest,
                       const Tensor& gradient, const Tensor& of_points, const Tensor& of_others) {
    for (int64_t i = 0; i < nearest.size(0); ++i) {
      for (int64_t k = 0; k < nearest.size(1); ++k) {
        const auto other = nearest[i][k].item<int64_t>();
        const Tensor slope = 2 * gradient[i][k].to(at::kDouble) * (points[i][k] - others[i][other]);
        of_points[i][k] += slope;
        of_others[i][other] -= slope;
      }
    }
  };
  pull(a, b, in[2], in[4], of_a, of_b);
  pull(b, a, in[3], in[5], of_b, of_a);
  return {of_a.to(in[0].scalar_type()), of_b.to(in[0].scalar_type())};
}

Rows Trainings() {
  return {
      {"aclnnMoeFinalizeRoutingV2Grad",
       [](Source& source, at::ScalarType dtype) {
         const auto of = [&](const Ints& sizes) { return source.Random(sizes, dtype); };
         const auto rows = [&](int64_t count) { return source.Shuffled(count).to(at::kInt); };
         const Tensor dropped = at::tensor({3, -1, 0, 5, -1, 1}, at::kInt);
         const int64_t none = 0, one = 1, three = 3, two = 2, four = 4;
         return std::vector<Args>{
             {of({3, 4}), rows(6), of({6, 4}), of({3, 2}), source.Indices({3, 2}, 5, at::kInt),
              of({5, 4}), none, none, none, none},
             {of({4, 3}).t(), rows(6), of({4, 4}), of({3, 2}), Null{}, Null{}, none, four, none,
              none},
             {of({3, 4}), dropped, of({3, 2, 4}), of({3, 2}), Null{}, Null{}, one, none, three,
              two},
             {of({5, 4}), rows(5), Null{}, Null{}, Null{}, Null{}, none, none, none, none}};
       },
       kPlainFloats, FinalizedBackByHand, kSums},
      {"aclnnApplyFusedEmaAdam",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (int64_t mode : {0, 1}) {
           for (bool corrected : {false, true}) {
             const Tensor step = at::full({1}, 3, at::kLong);
             inputs.push_back({source.Random({5, 7}, dtype), source.Random({5, 7}, dtype),
                               source.Random({7, 5}, dtype).t(),
                               source.Random({5, 7}, dtype, 0.5, 2), source.Random({5, 7}, dtype),
                               step, 0.01, 0.9, 0.8, 0.95, 1e-8, mode, corrected, 0.1});
           }
         }
         return inputs;
       },
       kPlainFloats, SteppedByHand, kSums},
      {"aclnnChamferDistanceBackward",
       [](Source& source, at::ScalarType dtype) {
         return std::vector<Args>{
             {source.Random({2, 5, 2}, dtype), source.Random({2, 3, 2}, dtype),
              source.Indices({2, 5}, 3, at::kInt), source.Indices({2, 3}, 5, at::kInt),
              source.Random({2, 5}, dtype), source.Random({2, 3}, dtype)},
             {source.Random({4, 1, 2}, dtype).transpose(0, 1), source.Random({1, 6, 2}, dtype),
              source.Indices({1, 4}, 6, at::kInt), source.Indices({1, 6}, 4, at::kInt),
              source.Random({4, 1}, dtype).t(), source.Random({1, 6}, dtype)}};
       },
       {at::kFloat, at::kHalf},
       NearestByHand,
       kSums},
  };
}

// (gradOutput, mask, scale)
Tensor KeptByHand(const In& in) {
  const double scale = in.real(2);
  const Tensor values = in[0].to(at::kDouble).contiguous().clone();
  auto* x = values.data_ptr<double>();
  const auto* bytes = in[1].data_ptr<uint8_t>();
  for (int64_t i = 0; i < values.numel() && scale != 1; ++i) {
    x[i] = (bytes[i / 8] >> i % 8 & 1) != 0 ? x[i] * scale : 0;
  }
  return values.to(in[0].scalar_type());
}

// (varRef, inputValue, begin, end, strides, axes?): element by element along each axis
Tensor AssignedByHand(const In& in) {
  const Tensor result = in[0].contiguous().clone();
  const Ints begin = in.ints(2), end = in.ints(3), steps = in.ints(4), axes = in.maybe_ints(5);
  Tensor places = at::arange(result.numel()).view(result.sizes());
  for (size_t i = 0; i < begin.size(); ++i) {
    const int64_t axis = axes.empty() ? static_cast<int64_t>(i) : axes[i], size = in[0].size(axis);
    Ints kept;
    const int64_t first = begin[i] < 0 ? begin[i] + size : begin[i];
    const int64_t last = std::min(end[i] < 0 ? end[i] + size : end[i], size);
    for (int64_t k = first; k < last; k += steps[i]) kept.push_back(k);
    places = places.index_select(axis, at::tensor(kept, at::kLong));
  }
  result.view(-1).index_copy_(0, places.reshape(-1), in[1].reshape(-1));
  return result;
}

// (varRef, indices, updates): rows, or positions where the updates have fewer dims
Tensor AddedByHand(const In& in) {
  const Tensor sums = in[0].to(at::kDouble).contiguous().clone(), updates = in[2].to(at::kDouble);
  const bool by_row = updates.dim() == in[1].dim() + sums.dim() - 1;
  const Tensor places = by_row ? in[1].unsqueeze(-1) : in[1];
  const Tensor flat = places.reshape({-1, places.size(-1)});
  Ints rest(in[0].sizes().begin() + places.size(-1), in[0].sizes().end());
  rest.insert(rest.begin(), flat.size(0));
  const Tensor added = updates.reshape(rest);
  for (int64_t i = 0; i < flat.size(0); ++i) {
    Tensor slice = sums;
    for (int64_t k = 0; k < flat.size(1); ++k) slice = slice.select(0, flat[i][k].item<int64_t>());
    slice.add_(added[i]);
  }
  return sums.to(in[0].scalar_type());
}

// (selfRef, indices, maxNorm, normType); the library adds 1e-7 to the norm that it divides by.
Tensor RenormedByHand(const In& in) {
  const Tensor table = in[0].to(at::kDouble).contiguous().clone();
  std::vector<bool> done(table.size(0));
  const Tensor flat = in[1].reshape(-1);
  for (int64_t i = 0; i < flat.numel(); ++i) {
    const auto row = flat[i].item<int64_t>();
    if (done[row]) continue;
    done[row] = true;
    const double norm =
        std::pow(table[row].abs().pow(in.real(3)).sum().item<double>(), 1 / in.real(3));
    if (norm > in.real(2)) table[row] *= in.real(2) / (norm + 1e-7);
  }
  return table.to(in[0].scalar_type());
}

Rows Places() {
  return {
      {"aclnnStridedSliceAssignV2",
       [](Source& source, at::ScalarType dtype) {
         const auto of = [&](const Ints& sizes) { return source.Random(sizes, dtype); };
         return std::vector<Args>{
             {of({4, 3}), of({2, 2}), Ints{1, 0}, Ints{4, 2}, Ints{2, 1}, Ints{0, 1}},
             {of({5, 6}), of({2, 3}).t().contiguous().t(), Ints{-3, 1}, Ints{-1, 4}, Ints{1, 1},
              Null{}},
             {of({3, 7, 2}).transpose(0, 2), of({2, 3, 3}), Ints{1}, Ints{100}, Ints{2}, Ints{1}},
             {of({6}), of({0}), Ints{4}, Ints{4}, Ints{1}, Null{}}};
       },
       {at::kFloat, at::kHalf, at::kBFloat16, at::kInt, at::kLong, at::kDouble, at::kChar},
       AssignedByHand},
      {"aclnnTfScatterAdd",
       [](Source& source, at::ScalarType dtype) {
         const auto of = [&](const Ints& sizes) { return source.Random(sizes, dtype); };
         return std::vector<Args>{
             {of({5, 3}), source.Indices({4}, 5), of({4, 3})},
             {of({3, 5}).t(), source.Indices({2, 3}, 5, at::kInt), of({2, 3, 3})},
             {of({5, 3, 2}), source.Indices({6, 2}, 3), of({6, 2})},
             {of({5, 3}), source.Indices({4, 1}, 5, at::kInt), of({4, 3})},
             {of({4}), source.Indices({0}, 4), of({0})}};
       },
       {at::kFloat, at::kHalf, at::kBFloat16, at::kInt},
       AddedByHand,
       kSums},
      {"aclnnEmbeddingRenorm",
       [](Source& source, at::ScalarType dtype) {
         return std::vector<Args>{
             {source.Random({6, 4}, dtype), source.Indices({5}, 6), 1.5, 2.0},
             {source.Random({4, 6}, dtype).t(), source.Indices({2, 3}, 6, at::kInt), 4.0, 1.0},
             {source.Random({3, 5}, dtype), source.Indices({0}, 3), 1.0, 2.0}};
       },
       kPlainFloats, RenormedByHand, kSums},
  };
}

Rows Routings() {
  return {
      {"aclnnMoeFinalizeRouting",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (bool second : {false, true}) {
           const Tensor rows = source.Shuffled(6).to(at::kInt);
           Args args = {
               source.Random({6, 4}, dtype),       source.Random({4, 3}, dtype).t(), Null{},
               source.Random({5, 4}, dtype),       source.Random({3, 2}, dtype),     rows,
               source.Indices({3, 2}, 5, at::kInt)};
           if (second) args[2] = source.Random({3, 4}, dtype);
           inputs.push_back(args);
         }
         return inputs;
       },
       kPlainFloats, FinalizedByHand, kSums},
      {"aclnnMoeInitRoutingV2Grad",
       [](Source& source, at::ScalarType dtype) {
         const Tensor dropped = at::tensor({3, -1, 0, 5, -1, 1}, at::kInt);
         return std::vector<Args>{
             {source.Random({6, 4}, dtype), source.Shuffled(6).to(at::kInt), int64_t{2}, int64_t{0},
              int64_t{0}},
             {source.Random({3, 4}, dtype).t(), source.Shuffled(6).to(at::kInt), int64_t{3},
              int64_t{0}, int64_t{4}},
             {source.Random({3, 2, 5}, dtype), dropped, int64_t{2}, int64_t{1}, int64_t{0}}};
       },
       kPlainFloats, RoutedBackByHand, kSums},
      {"aclnnDropoutBackward",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (double scale : {0.0, 1.0, 2.0}) {
           inputs.push_back(
               {source.Random({5, 30}, dtype), source.Random({32}, at::kByte, 0, 255), scale});
           inputs.push_back(
               {source.Random({7, 9}, dtype).t(), source.Random({16}, at::kByte, 0, 255), scale});
         }
         return inputs;
       },
       kPlainFloats, KeptByHand, kFormula},
  };
}

}  // namespace

Rows SampleRows() {
  Rows rows = Lists();
  for (const Rows& more :
       {Bits(), Segments(), SoughtElements(), Products(), Places(), Routings(), Trainings()}) {
    rows.insert(rows.end(), more.begin(), more.end());
  }
  for (Row& row : rows) row.inplace = false;
  return rows;
}

}  // namespace acltape::opapi::grid
