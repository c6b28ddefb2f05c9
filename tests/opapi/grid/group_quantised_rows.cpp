// Quantisation with scales of groups and blocks, on the way into a cache, after a norm, and there
// and back in one. References go element by element, in double precision.
#include <cmath>

#include "tests/opapi/grid/formula.h"
#include "tests/opapi/grid/quantized.h"

namespace acltape::opapi::grid {
namespace {

using Ints = std::vector<int64_t>;

const Dtypes kQuantised = {at::kFloat, at::kHalf, at::kBFloat16};

// (x, scale, groupIndex, offset?, dstType)
Tensor GroupQuantised(const In& in) {
  const Tensor result = at::zeros(in[0].sizes(), at::kChar);
  const Tensor offset = in.maybe(3) ? Wide(in[3]).reshape({}) : at::zeros({}, at::kDouble);
  int64_t begin = 0;
  for (int64_t g = 0; g < in[2].numel(); ++g) {
    const int64_t end = in[2][g].item().toLong();
    for (int64_t row = begin; row < end; ++row) {
      result[row].copy_(ToInt8(Wide(in[0][row]) * Wide(in[1][g]) + offset));
    }
    begin = std::max(begin, end);
  }
  return result;
}

// (x, minScale, roundMode?, dstType, rowBlockSize, colBlockSize, ...)
std::tuple<Tensor, Tensor> BlockQuantised(const In& in) {
  const Tensor x = Wide(in[0]);
  const int64_t rows = in.integer(4), columns = in.integer(5);
  Ints sizes = {(x.size(0) + rows - 1) / rows, (x.size(1) + columns - 1) / columns};
  const Tensor y = at::zeros(x.sizes(), at::kChar), scale = at::zeros(sizes);
  for (int64_t i = 0; i < sizes[0]; ++i) {
    for (int64_t j = 0; j < sizes[1]; ++j) {
      const auto block = [&](const Tensor& of) {
        return of.slice(0, i * rows, (i + 1) * rows).slice(1, j * columns, (j + 1) * columns);
      };
      double step = block(x).abs().max().item<double>() / 127;
      if (in.real(1) > 0) step = std::min(step, 1 / in.real(1));
      // Quotients are rounded to float32, which decides the halves.
      const auto divisor = static_cast<float>(step == 0 ? 1 : step);
      block(y).copy_(ToInt8(block(x).to(at::kFloat) / divisor));
      scale[i][j].fill_(step);
    }
  }
  return {y, scale};
}

Inputs BlockQuants(bool has_most) {
  return [has_most](Source& source, at::ScalarType dtype) {
    const Tensor zeros = at::zeros({3, 70}, dtype);
    std::vector<Args> inputs;
    const auto add = [&](const Tensor& x, double least, const Arg& mode, int64_t rows,
                         int64_t columns) {
      Args args = {x, least, mode, int64_t{2}, rows, columns};
      if (has_most) args.push_back(0.0);
      inputs.push_back(args);
    };
    add(source.Random({5, 300}, dtype), 0, "rint", 1, 128);
    add(source.Random({150, 7}, dtype).t(), 0, Null{}, 1, 64);
    add(source.Random({130, 9}, dtype), 100, "rint", 128, 128);
    add(zeros, 0, "rint", 1, 128);
    return inputs;
  };
}

// (x, weightScale, activateScale?, bias?, outputDtype)
Tensor Dequantised(const In& in) {
  const bool before = in.maybe(3) && in[3].scalar_type() == at::kInt;
  Tensor result = Wide(in[0]);
  if (before) result = result + Wide(in[3]);
  result = result * Wide(in[1]);
  if (in.maybe(2)) result = result * Wide(in[2]).unsqueeze(1);
  if (in.maybe(3) && !before) result = result + Wide(in[3]);
  return result.to(in.integer(4) == 1 ? at::kHalf : at::kBFloat16);
}

Rows GroupRows() {
  return {
      {"aclnnGroupQuant",
       [](Source& source, at::ScalarType dtype) {
         const Tensor ends = at::tensor({2, 2, 7}, at::kLong);
         return std::vector<Args>{
             {source.Random({7, 5}, dtype), source.Random({3, 5}, dtype, 5, 20), ends,
              source.Random({1}, dtype), int64_t{2}},
             {source.Random({5, 7}, dtype).t(), source.Random({5, 3}, dtype, 5, 20).t(),
              ends.to(at::kInt), Null{}, int64_t{2}},
             {source.Random({7, 3}, dtype), source.Random({3, 3}, dtype, 5, 20), ends,
              source.Random({}, dtype), int64_t{2}}};
       },
       kQuantised, GroupQuantised},
      {"aclnnDynamicBlockQuant", BlockQuants(false), kQuantised, BlockQuantised, kOnce},
      {"aclnnDynamicBlockQuantV2", BlockQuants(true), kQuantised, BlockQuantised, kOnce},
      {"aclnnDequantBias",
       [](Source& source, at::ScalarType dtype) {
         const int64_t number = dtype == at::kFloat ? 1 : 27;
         const auto x = [&](const Ints& sizes) {
           return source.Random(sizes, at::kInt, -900, 900);
         };
         const auto scale = [&](int64_t count) { return source.Random({count}, dtype, 0, 0.1); };
         const auto of_row = [&](int64_t count) {
           return source.Random({count}, at::kFloat, 0, 0.1);
         };
         return std::vector<Args>{
             {x({4, 6}), scale(6), of_row(4), source.Random({6}, at::kInt, -99, 99), number},
             {x({6, 4}).t(), scale(6), Null{}, source.Random({6}, at::kHalf), number},
             {x({3, 5}), scale(5), of_row(3), source.Random({5}, at::kFloat), number},
             {x({3, 5}), scale(5), Null{}, source.Random({5}, at::kBFloat16), number},
             {x({3, 5}), scale(5), Null{}, Null{}, number}};
       },
       {at::kFloat, at::kBFloat16},
       Dequantised,
       kFormula},
  };
}

// The numbers and whether they lay in range, for steps and zeros that meet them by broadcasting.
std::tuple<Tensor, Tensor> FakeQuantised(const In& in, const Tensor& step, const Tensor& zero) {
  const double least = in.real(4), most = in.real(5);
  const auto whole = [](double x, double s, double z) { return std::nearbyint(x / s) + z; };
  const Tensor out =
      Formula([=](double x, double s,
                  double z) { return (std::min(most, std::max(least, whole(x, s, z))) - z) * s; },
              in[0], step, zero);
  const Tensor mask =
      Formula([=](double x, double s,
                  double z) { return whole(x, s, z) >= least && whole(x, s, z) <= most ? 1 : 0; },
              in[0], step, zero);
  return {out.to(in[0].scalar_type()), mask.to(at::kBool)};
}

Rows ThereAndBack() {
  return {
      {"aclnnFakeQuantPerTensorAffineCachemask",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (const Ints& sizes : {Ints{}, Ints{0, 3}, Ints{7}, Ints{3, 4, 5}, Ints(8, 2)}) {
           inputs.push_back({source.Random(sizes, dtype), source.Random({1}, dtype, 0.1, 0.3),
                             at::full({1}, 3, at::kInt), 1.0, int64_t{-8}, int64_t{7}});
         }
         inputs.push_back({source.Random({5, 4}, dtype).t(), source.Random({1}, dtype, 0.1, 0.3),
                           at::full({1}, -2, at::kInt), 0.0, int64_t{-8}, int64_t{7}});
         return inputs;
       },
       {at::kFloat, at::kHalf},
       [](const In& in) {
         if (in.real(3) < 1) return std::make_tuple(in[0], at::ones(in[0].sizes(), at::kBool));
         return FakeQuantised(in, in[1].reshape({}), in[2].reshape({}));
       },
       kFormula},
      {"aclnnFakeQuantPerChannelAffineCachemask",
       [](Source& source, at::ScalarType dtype) {
         const auto add = [&](const Tensor& self, int64_t axis) {
           const int64_t count = self.size(axis);
           return Args{self,
                       source.Random({count}, dtype, 0.1, 0.3),
                       source.Random({count}, at::kInt, -3, 3),
                       axis,
                       int64_t{-8},
                       int64_t{7}};
         };
         return std::vector<Args>{add(source.Random({3, 4, 5}, dtype), 1),
                                  add(source.Random({5, 4}, dtype).t(), -1),
                                  add(source.Random({7}, dtype), 0)};
       },
       {at::kFloat, at::kHalf},
       [](const In& in) {
         Ints spread(in[0].dim(), 1);
         spread[in.integer(3) < 0 ? in.integer(3) + in[0].dim() : in.integer(3)] = in[1].numel();
         return FakeQuantised(in, in[1].reshape(spread), in[2].reshape(spread));
       },
       kFormula},
  };
}

// (selfRef, indices, updates, quantScales, quantZeroPoints?, axis, quantAxis, reduction, ...)
Tensor ScatteredInt8(const In& in) {
  const Tensor result = in[0].contiguous().clone();
  const int64_t axis = in.integer(5) < 0 ? in.integer(5) + in[0].dim() : in.integer(5);
  const Tensor zeros = in.maybe(4) ? Wide(in[4]).reshape(-1) : at::zeros({}, at::kDouble);
  for (int64_t b = 0; b < in[2].size(0); ++b) {
    const bool named = in[1].dim() == 2;
    const int64_t entry = named ? in[1][b][0].item().toLong() : b;
    const int64_t first = (named ? in[1][b][1] : in[1][b]).item().toLong();
    for (int64_t i = 0; i < in[2].size(axis); ++i) {
      const Tensor row = Wide(in[2][b].select(axis - 1, i));
      result[entry]
          .select(axis - 1, first + i)
          .copy_(ToInt8(row / Wide(in[3]).reshape(-1) + zeros));
    }
  }
  return result;
}

Inputs Int8Scatters(bool has_mode) {
  return [has_mode](Source& source, at::ScalarType dtype) {
    const at::ScalarType of_scale = dtype == at::kHalf ? at::kFloat : at::kBFloat16;
    const at::ScalarType of_zeros = dtype == at::kHalf ? at::kInt : at::kBFloat16;
    const auto data = [&](const Ints& sizes) { return source.Random(sizes, at::kChar, -99, 99); };
    const auto scale = [&](const Ints& sizes) { return source.Random(sizes, of_scale, 0.02, 0.1); };
    const int64_t one = 1, last = -1;
    std::vector<Args> inputs = {
        {data({3, 5, 4}), at::tensor({1, 3}, at::kInt), source.Random({2, 2, 4}, dtype), scale({4}),
         at::full({4}, 2, of_zeros), int64_t{-2}, last, one},
        {data({3, 5, 4}), at::tensor({2, 0, 1, 4}, at::kLong).view({2, 2}),
         source.Random({4, 1, 2}, dtype).permute({2, 1, 0}), scale({1, 1, 4}), Null{}, one,
         int64_t{2}, one},
        {data({2, 3, 6, 4}), at::tensor({0, 2}, at::kInt), source.Random({2, 3, 4, 4}, dtype),
         scale({4}), Null{}, int64_t{2}, last, one}};
    for (Args& args : inputs) {
      if (has_mode) args.push_back("rint");
    }
    return inputs;
  };
}

// (x, gamma, smoothScales?, beta?, epsilon, dstType)
std::tuple<Tensor, Tensor> RmsByRow(const In& in) {
  const Tensor x = Wide(in[0]);
  Tensor y = x / (x.pow(2).mean(at::IntArrayRef({-1}), true) + in.real(4)).sqrt() * Wide(in[1]);
  y = (y + WideOr(in, 3, 0)) * WideOr(in, 2, 1);
  const Tensor step = y.abs().amax(-1, true) / 127;
  return {ToInt8(y / step), step.squeeze(-1).to(at::kFloat)};
}

// (x, gamma, beta, scale, zeroPoints?, quantMode, epsilon)
std::tuple<Tensor, Tensor> LayerByRow(const In& in) {
  const Tensor x = Wide(in[0]), mean = x.mean(at::IntArrayRef({-1}), true);
  const Tensor spread = x.var(at::IntArrayRef({-1}), /*unbiased=*/false, /*keepdim=*/true);
  const Tensor y = (x - mean) / (spread + in.real(6)).sqrt() * Wide(in[1]) + Wide(in[2]);
  Ints sizes = in[0].sizes().vec();
  sizes.pop_back();
  return {ToInt8(y / Wide(in[3]) + WideOr(in, 4, 0)), at::zeros(sizes)};
}

Rows FusedInt8Rows() {
  const Dtypes halves = {at::kHalf, at::kBFloat16};
  return {
      {"aclnnInplaceQuantScatter", Int8Scatters(false), halves, ScatteredInt8},
      {"aclnnInplaceQuantScatterV2", Int8Scatters(true), halves, ScatteredInt8},
      {"aclnnRmsNormDynamicQuant",
       [](Source& source, at::ScalarType dtype) {
         const auto of = [&](const Ints& sizes) { return source.Random(sizes, dtype); };
         return std::vector<Args>{
             {of({5, 16}), of({16}), source.Random({16}, dtype, 0.5, 2), of({16}), 1e-6,
              int64_t{2}},
             {of({8, 3, 2}).transpose(0, 2), of({8}), Null{}, Null{}, 1e-5, int64_t{2}},
             {of({7}), of({7}), Null{}, of({7}), 1e-5, int64_t{2}}};
       },
       halves, RmsByRow, kOnce},
      {"aclnnLayerNormQuant",
       [](Source& source, at::ScalarType dtype) {
         const auto of = [&](const Ints& sizes) { return source.Random(sizes, dtype); };
         const auto scale = [&](int64_t count) { return source.Random({count}, dtype, 0.02, 0.1); };
         return std::vector<Args>{
             {of({5, 16}), of({16}), of({16}), scale(16), at::randint(-9, 9, {16}, at::kChar), 0,
              1e-5},
             {of({8, 3, 2}).transpose(0, 2), of({8}), of({8}), scale(1), Null{}, 0, 1e-6},
             {of({2, 7}), of({7}), of({7}), scale(1), at::full({1}, -4, at::kChar), 0, 1e-5}};
       },
       halves, LayerByRow, kOnce},
  };
}

}  // namespace

Rows GroupQuantisedRows() {
  Rows rows = GroupRows();
  for (const Rows& more : {ThereAndBack(), FusedInt8Rows()}) {
    rows.insert(rows.end(), more.begin(), more.end());
  }
  for (Row& row : rows) row.inplace = false;
  return rows;
}

}  // namespace acltape::opapi::grid
