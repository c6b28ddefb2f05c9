// Normalisations fused with what stands around them, against the library's operators one after the
// other.
#include <cmath>

#include "tests/opapi/grid/row.h"

namespace acltape::opapi::grid {
namespace {

using Ints = std::vector<int64_t>;

const std::vector<Ints> kSizes = {{5, 16}, {2, 3, 8}, {17, 32}};

Tensor AddedInputs(const In& in) {
  const Tensor sum = InFloat(in[0]) + InFloat(in[1]);
  return in.maybe(4) ? sum + InFloat(in[4]) : sum;
}

Rows LayerNorms() {
  return {
      {"aclnnAddLayerNorm",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (const Ints& sizes : kSizes) {
           const Ints width = {sizes.back()};
           for (int variant = 0; variant < 3; ++variant) {
             inputs.push_back({source.Random(sizes, dtype), source.Random(sizes, dtype),
                               source.Random(width, dtype), source.Random(width, dtype),
                               variant == 0   ? Arg(Null{})
                               : variant == 1 ? Arg(source.Random(width, dtype))
                                              : Arg(source.Random(sizes, dtype)),
                               1e-5, true});
           }
         }
         return inputs;
       },
       kFloats,
       [](const In& in) {
         const Tensor sum = AddedInputs(in);
         const auto [y, mean, rstd] =
             at::native_layer_norm(sum, in[2].sizes(), InFloat(in[2]), InFloat(in[3]), in.real(5));
         const at::ScalarType dtype = in[0].scalar_type();
         return std::make_tuple(y.to(dtype), mean, rstd, sum.to(dtype));
       },
       kComposed},
      {"aclnnAddLayerNormGrad",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (const Ints& sizes : kSizes) {
           const Ints width = {sizes.back()};
           Ints rows = sizes;
           rows.back() = 1;
           for (bool residual : {false, true}) {
             inputs.push_back({source.Random(sizes, dtype), source.Random(sizes, dtype),
                               source.Random(sizes, dtype), source.Random(rows, at::kFloat, 0.5, 2),
                               source.Random(rows, at::kFloat), source.Random(width, dtype),
                               residual ? Arg(source.Random(sizes, dtype)) : Arg(Null{})});
           }
         }
         return inputs;
       },
       {at::kFloat, at::kHalf, at::kBFloat16},
       [](const In& in) {
         const Tensor gamma = InFloat(in[5]);
         auto [dx, dgamma, dbeta] = at::native_layer_norm_backward(
             InFloat(in[0]), InFloat(in[1]) + InFloat(in[2]), gamma.sizes(), in[4], in[3], gamma,
             at::zeros_like(gamma), {true, true, true});
         if (in.maybe(6)) dx = dx + InFloat(in[6]);
         return std::make_tuple(dx.to(in[0].scalar_type()), dgamma, dbeta);
       },
       kComposed},
  };
}

// The rows of the sum, their inverse root of the mean square, and the result.
struct Rms {
  Rms(const Tensor& rows, const Tensor& gamma, double epsilon)
      : sum(rows),
        inverse((rows * rows).mean(at::IntArrayRef({-1}), true).add(epsilon).rsqrt()),
        result(rows * inverse * gamma) {}
  Tensor sum, inverse, result;
};

Inputs AddedRows() {
  return [](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs;
    for (const Ints& sizes : kSizes) {
      inputs.push_back({source.Random(sizes, dtype), source.Random(sizes, dtype),
                        source.Random({sizes.back()}, dtype), 1e-6});
    }
    return inputs;
  };
}

// The same with what is added after gamma, or without it.
Inputs AddedRowsWithBias() {
  return [](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs;
    for (const Ints& sizes : kSizes) {
      for (bool biased : {true, false}) {
        const Ints width = {sizes.back()};
        inputs.push_back({source.Random(sizes, dtype), source.Random(sizes, dtype),
                          source.Random(width, dtype),
                          biased ? Arg(source.Random(width, dtype)) : Arg(Null{}), 1e-6});
      }
    }
    return inputs;
  };
}

Rows RmsNorms() {
  return {
      {"aclnnAddRmsNormBias", AddedRowsWithBias(), kFloats,
       [](const In& in) {
         const Rms rms(InFloat(in[0]) + InFloat(in[1]), InFloat(in[2]), in.real(4));
         const at::ScalarType dtype = in[0].scalar_type();
         const Tensor result = in.maybe(3) ? rms.result + InFloat(*in.maybe(3)) : rms.result;
         return std::make_tuple(result.to(dtype), rms.inverse, rms.sum.to(dtype));
       },
       kComposed},
      {"aclnnAddRmsNormCast",
       AddedRows(),
       {at::kHalf, at::kBFloat16, at::kFloat},
       [](const In& in) {
         const Rms rms(InFloat(in[0]) + InFloat(in[1]), InFloat(in[2]), in.real(3));
         const at::ScalarType dtype = in[0].scalar_type();
         return std::make_tuple(rms.result, rms.result.to(dtype), rms.inverse, rms.sum.to(dtype));
       },
       kComposed},
      {"aclnnInplaceAddRmsNorm", AddedRows(), kFloats,
       [](const In& in) {
         const Rms rms(InFloat(in[0]) + InFloat(in[1]), InFloat(in[2]), in.real(3));
         const at::ScalarType dtype = in[0].scalar_type();
         return std::make_tuple(rms.result.to(dtype), rms.sum.to(dtype), rms.inverse);
       },
       kComposed},
      {"aclnnGemmaRmsNorm",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (const Ints& sizes : kSizes) {
           inputs.push_back(
               {source.Random(sizes, dtype), source.Random({sizes.back()}, dtype), 1e-6});
         }
         return inputs;
       },
       kFloats,
       [](const In& in) {
         const Rms rms(InFloat(in[0]), InFloat(in[1]) + 1, in.real(2));
         return std::make_tuple(rms.result.to(in[0].scalar_type()), rms.inverse);
       },
       kComposed},
  };
}

// (x, gamma, beta, groups, ...)
Inputs Groups(Args tail) {
  return [tail](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs;
    for (int64_t groups : {1, 2, 4}) {
      for (const Tensor& x :
           {source.Random({3, 4, 5, 2}, dtype), source.Random({3, 6, 4}, dtype).transpose(1, 2)}) {
        Args args = {x, source.Random({4}, dtype), source.Random({4}, dtype), groups};
        args.insert(args.end(), tail.begin(), tail.end());
        inputs.push_back(args);
      }
    }
    return inputs;
  };
}

std::tuple<Tensor, Tensor, Tensor> GroupNorm(const In& in, double epsilon, bool active,
                                             double scale) {
  const Tensor x = InFloat(in[0]).contiguous();
  const auto [y, mean, rstd] =
      at::native_group_norm(x, InFloat(in[1]), InFloat(in[2]), x.size(0), x.size(1),
                            x.numel() / x.size(0) / x.size(1), in.integer(3), epsilon);
  const Tensor activated = active ? y * at::sigmoid(y * scale) : y;
  const at::ScalarType dtype = in[0].scalar_type();
  return {activated.to(dtype), mean.to(dtype), rstd.to(dtype)};
}

// (x, scale, shift, weight?, bias?, epsilon): scale and shift with and without the dim of size 1
Inputs Adapted() {
  return [](Source& source, at::ScalarType dtype) {
    const Tensor turned = source.Random({3, 2, 8}, dtype).transpose(0, 1);
    const auto of = [&](const Ints& sizes) { return source.Random(sizes, dtype); };
    return std::vector<Args>{
        {of({2, 4, 8}), of({2, 8}), of({2, 8}), of({8}), of({8}), 1e-5},
        {turned, of({2, 1, 8}), of({2, 8}), Null{}, of({8}), 1e-5},
        {of({3, 2, 4, 5}), of({3, 2, 5}), of({3, 2, 1, 5}), of({5}), Null{}, 1e-3},
        {of({4, 6}), of({6}), of({1, 6}), Null{}, Null{}, 1e-5}};
  };
}

// LayerNorm(x) * (1 + scale) + shift, mean and rstd, in double
std::tuple<Tensor, Tensor, Tensor> AdaptedByHand(const In& in) {
  const Tensor x = in[0].to(at::kDouble);
  const Tensor mean = x.mean({-1}, true);
  const Tensor rstd = ((x - mean).pow(2).mean({-1}, true) + in.real(5)).rsqrt();
  Tensor normal = (x - mean) * rstd;
  if (in.maybe(3)) normal = normal * in[3].to(at::kDouble);
  if (in.maybe(4)) normal = normal + in[4].to(at::kDouble);
  Ints wide = x.sizes().vec();
  wide[wide.size() - 2] = 1;
  const Tensor scale = in[1].to(at::kDouble).view(wide), shift = in[2].to(at::kDouble).view(wide);
  const at::ScalarType dtype = in[0].scalar_type();
  return {(normal * (1 + scale) + shift).to(dtype), mean.to(dtype), rstd.to(dtype)};
}

// (gradOut, input, normalizedShape, rstd, mean, scale, shift, weight?, bias?)
Inputs AdaptedGradients() {
  return [](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs;
    for (const Args& args : Adapted()(source, dtype)) {
      const Tensor x = std::get<Tensor>(args[0]);
      Ints rows = x.sizes().vec();
      rows.back() = 1;
      inputs.push_back({source.Random(x.sizes(), dtype), x, Ints{x.size(-1)},
                        source.Random(rows, dtype, 0.5, 2), source.Random(rows, dtype), args[1],
                        args[2], args[3], args[4]});
    }
    return inputs;
  };
}

// The sums of the vendor's documentation, in double.
std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> AdaptedSlopes(const In& in) {
  const auto wide = [](const Tensor& tensor) { return tensor.to(at::kDouble); };
  const Tensor dy = wide(in[0]), x = wide(in[1]), rstd = wide(in[3]), z = (x - wide(in[4])) * rstd;
  const int64_t width = x.size(-1);
  Ints over = x.sizes().vec();
  over[over.size() - 2] = 1;
  const Tensor factor = 1 + wide(in[5]).view(over);
  const Tensor weight = in.maybe(7) ? wide(in[7]) : at::ones({width}, at::kDouble);
  const Tensor bias = in.maybe(8) ? wide(in[8]) : at::zeros({width}, at::kDouble);
  const Tensor g = dy * weight * factor;
  const Tensor first = g.sum({-1}, true) / width, second = z * (g * z).sum({-1}, true) / width;
  const at::ScalarType dtype = in[0].scalar_type();
  return {((g - first - second) * rstd).to(dtype),
          (dy * (z * weight + bias)).sum(-2).view(in[5].sizes()).to(dtype),
          dy.sum(-2).view(in[6].sizes()).to(dtype),
          (dy * factor * z).reshape({-1, width}).sum(0).to(dtype),
          (dy * factor).reshape({-1, width}).sum(0).to(dtype)};
}

// (gradOut, input, weight, runningMean, runningVar, saveMean, saveInvstd, training, eps, mask,
// version)
Inputs BatchGradients() {
  return [](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs;
    for (const Tensor& x : {source.Random({4, 3}, dtype), source.Random({2, 3, 4, 5}, dtype),
                            source.Random({3, 2, 6}, dtype).transpose(0, 1)}) {
      for (bool training : {false, true}) {
        const auto of_channels = [&](double low) { return source.Random({3}, dtype, low, 2); };
        inputs.push_back({source.Random(x.sizes(), dtype), x, of_channels(-2), of_channels(-2),
                          of_channels(0.5), of_channels(-2), of_channels(0.5), training, 1e-5,
                          Ints{1, 1, 1}, int64_t{training ? 1 : 0}});
      }
    }
    return inputs;
  };
}

// The sums over all but the channels, in double.
std::tuple<Tensor, Tensor, Tensor> BatchSlopes(const In& in) {
  const Tensor x = in[1].to(at::kDouble), dy = in[0].to(at::kDouble);
  Ints over(x.dim(), 1), others;
  over[1] = x.size(1);
  for (int64_t i = 0; i < x.dim(); ++i) {
    if (i != 1) others.push_back(i);
  }
  const auto spread = [&](int i) { return in[i].to(at::kDouble).view(over); };
  const bool training = in.flag(7);
  const Tensor scale = training ? spread(6) : (spread(4) + in.real(8)).rsqrt();
  const Tensor z = (x - spread(training ? 5 : 3)) * scale;
  Tensor slope = dy;
  if (training) slope = dy - dy.mean(others, true) - z * (dy * z).mean(others, true);
  const at::ScalarType dtype = in[0].scalar_type();
  return {(slope * scale * spread(2)).to(dtype), (dy * z).sum(others).to(dtype),
          dy.sum(others).to(dtype)};
}

const Tolerance kSlopes = {16, 1e-4, false, "sums of many terms, rounded to float32"};

Rows AdaptedNorms() {
  return {
      {"aclnnFastBatchNormBackward",
       BatchGradients(),
       {at::kFloat, at::kDouble, at::kHalf},
       BatchSlopes,
       kSlopes},
      {"aclnnAdaLayerNormBackward", AdaptedGradients(), kFloats, AdaptedSlopes, kSlopes},
      {"aclnnAdaLayerNorm", Adapted(), kFloats,
       [](const In& in) { return std::get<0>(AdaptedByHand(in)); }, kComposed},
      {"aclnnAdaLayerNormV2", Adapted(), kFloats, AdaptedByHand, kComposed},
  };
}

// The gradients by the library's own operator, in double precision, from those of the swish's
// input.
Args GroupSlopes(const In& in) {
  const auto wide = [&](int i) { return in[i].to(at::kDouble).contiguous(); };
  const Tensor x = wide(3), mean = wide(1), rstd = wide(2);
  const int64_t batch = x.size(0), channels = x.size(1), groups = in.integer(6);
  const auto by_channel = [&](const Tensor& values) {
    return values.repeat_interleave(channels / groups, 1).unsqueeze(-1);
  };
  const Tensor flat = x.view({batch, channels, -1});
  const Tensor y = (flat - by_channel(mean)) * by_channel(rstd) * wide(4).view({1, channels, 1}) +
                   wide(5).view({1, channels, 1});
  const Tensor part = 1 / (1 + at::exp(y * -in.real(8)));
  const Tensor dy = wide(0).view_as(flat) * (part + y * in.real(8) * part * (1 - part));
  const auto [dx, dgamma, dbeta] = at::native_group_norm_backward(
      dy, flat, mean, rstd, wide(4), batch, channels, flat.size(2), groups, {true, true, true});
  const at::ScalarType dtype = in[0].scalar_type();
  return {dx.view_as(x).to(dtype), in.flag(9) ? dgamma.to(dtype) : Tensor(),
          in.flag(10) ? dbeta.to(dtype) : Tensor()};
}

Inputs GroupGradients() {
  return [](Source& source, at::ScalarType dtype) {
    const auto of = [&](const std::vector<int64_t>& sizes) { return source.Random(sizes, dtype); };
    std::vector<Args> inputs;
    for (int64_t groups : {1, 2, 4}) {
      const auto slopes = [&] { return source.Random({3, groups}, dtype, 0.5, 2); };
      inputs.push_back({of({3, 4, 5, 2}), of({groups, 3}).t(), slopes(), of({3, 4, 5, 2}), of({4}),
                        of({4}), groups, "NCHW", 1.5, true, groups != 2});
      inputs.push_back({of({3, 4}), of({3, groups}), slopes(), of({4, 3}).t(), of({4}), of({4}),
                        groups, "", 1.0, groups != 4, true});
    }
    return inputs;
  };
}

// Sinkhorn's iteration, number by number.
Tensor BalancedByHand(const In& in) {
  const int64_t rows = in[0].size(0), columns = in[0].size(1);
  const double tolerance = in.maybe_number(1) ? in.real(1) : 0.0001;
  const Tensor weights = in[0].to(at::kDouble).contiguous().exp();
  const auto* weight = weights.data_ptr<double>();
  std::vector<double> of_rows(rows), of_columns(columns, 1);
  double error = 1e9;
  while (error > tolerance) {
    for (int64_t r = 0; r < rows; ++r) {
      double sum = 1e-8;
      for (int64_t c = 0; c < columns; ++c) sum += of_columns[c] * weight[r * columns + c];
      of_rows[r] = 1 / (static_cast<double>(rows) * sum);
    }
    error = 0;
    for (int64_t c = 0; c < columns; ++c) {
      double sum = 1e-8;
      for (int64_t r = 0; r < rows; ++r) sum += of_rows[r] * weight[r * columns + c];
      const double next = 1 / (static_cast<double>(columns) * sum);
      error += std::abs(next - of_columns[c]) / static_cast<double>(columns);
      of_columns[c] = next;
    }
  }
  const Tensor balanced = at::zeros({rows, columns}, at::kDouble);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      balanced[r][c].fill_(of_rows[r] * weight[r * columns + c] * of_columns[c]);
    }
  }
  return balanced.to(in[0].scalar_type());
}

Rows GroupNorms() {
  const Dtypes narrow = {at::kFloat, at::kHalf, at::kBFloat16};
  return {
      {"aclnnGroupNormSwishGrad", GroupGradients(), narrow, GroupSlopes, kSlopes},
      {"aclnnSinkhorn",
       [](Source& source, at::ScalarType dtype) {
         return std::vector<Args>{{source.Random({7, 4}, dtype, 0, 1), 0.01},
                                  {source.Random({5, 6}, dtype, 0, 1).t(), Null{}},
                                  {source.Random({1, 3}, dtype, 0, 1), 0.0001},
                                  {source.Random({4, 1}, dtype, 0, 1), 0.5}};
       },
       narrow, BalancedByHand, kComposed},
      {"aclnnGroupNormSilu", Groups({1e-5}), kFloats,
       [](const In& in) { return GroupNorm(in, in.real(4), true, 1); }, kComposed},
      {"aclnnGroupNormSiluV2", All({Groups({1e-5, true}), Groups({1e-5, false})}), kFloats,
       [](const In& in) { return GroupNorm(in, in.real(4), in.flag(5), 1); }, kComposed},
      {"aclnnGroupNormSwish", Groups({"NCHW", 1e-5, true, 1.5}), kFloats,
       [](const In& in) { return GroupNorm(in, in.real(5), in.flag(6), in.real(7)); }, kComposed},
  };
}

}  // namespace

Rows FusedNormRows() {
  Rows rows = LayerNorms();
  for (const Rows& more : {RmsNorms(), GroupNorms(), AdaptedNorms()}) {
    rows.insert(rows.end(), more.begin(), more.end());
  }
  for (Row& row : rows) row.inplace = false;
  return rows;
}

}  // namespace acltape::opapi::grid
