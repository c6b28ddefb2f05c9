// Normalisations, pooling, losses, and the fused operators of transformers.
#include <cmath>

#include "tests/opapi/grid/row.h"

namespace acltape::opapi::grid {
namespace {

using Ints = std::vector<int64_t>;

// (input, normalizedShape, weight?, bias?, eps), then `extra`
Inputs LayersToNormalise(Args extra = {}) {
  return [extra](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs;
    const std::vector<std::pair<Tensor, Ints>> cases = {
        {source.Random({4, 6}, dtype), {6}},
        {source.Random({2, 3, 4, 5}, dtype), {4, 5}},
        {source.Random({7}, dtype), {7}},
        {source.Random({0, 6}, dtype), {6}},
        {source.Random({6, 9}, dtype).t(), {6}},
        {source.Random({12, 40}, dtype).slice(0, 1, 12, 3).slice(1, 5, 39, 2), {17}},
        {source.Random({33, 128}, dtype), {128}},
    };
    for (const auto& [input, shape] : cases) {
      inputs.push_back(
          {input, shape, source.Random(shape, dtype), source.Random(shape, dtype), 1e-5});
      inputs.push_back({input, shape, Null{}, Null{}, 1e-5});
      inputs.push_back({input, shape, source.Random(shape, dtype), Null{}, 1e-3});
    }
    for (Args& args : inputs) args.insert(args.end(), extra.begin(), extra.end());
    return inputs;
  };
}

Rows Normalisations() {
  const auto layer_norm = [](const In& in) {
    return at::native_layer_norm(in[0], in.ints(1), in.maybe(2), in.maybe(3), in.real(4));
  };
  return {
      {"aclnnLayerNorm", LayersToNormalise(), kFloats, layer_norm, kSummed},
      {"aclnnLayerNormWithImplMode",
       All({LayersToNormalise({int64_t{0}}), LayersToNormalise({int64_t{1}})}), kFloats, layer_norm,
       kSummed},
      {"aclnnLayerNormBackward",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (const Ints& sizes : {Ints{4, 6}, Ints{2, 3, 8}, Ints{17, 32}}) {
           const Ints shape = {sizes.back()};
           Ints rows = sizes;
           rows.back() = 1;
           inputs.push_back({source.Random(sizes, dtype), source.Random(sizes, dtype), shape,
                             source.Random(rows, dtype), source.Random(rows, dtype, 0.5, 2),
                             source.Random(shape, dtype), source.Random(shape, dtype),
                             Ints{1, 1, 1}});
         }
         return inputs;
       },
       {at::kFloat, at::kDouble},
       [](const In& in) {
         return at::native_layer_norm_backward(in[0], in[1], in.ints(2), in[3], in[4], in.maybe(5),
                                               in.maybe(6), {true, true, true});
       },
       kSummed},
      {"aclnnBatchNorm",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (const Ints& sizes : {Ints{4, 3}, Ints{2, 3, 5}, Ints{2, 3, 4, 5}, Ints{8, 3, 7, 7}}) {
           for (bool training : {false, true}) {
             inputs.push_back({source.Random(sizes, dtype), source.Random({3}, dtype),
                               source.Random({3}, dtype), source.Random({3}, dtype),
                               source.Random({3}, dtype, 0.5, 2), training, 0.1, 1e-5});
             inputs.push_back({source.Random({5, 4, 3, 2}, dtype).permute({3, 2, 0, 1}), Null{},
                               Null{}, source.Random({3}, dtype), source.Random({3}, dtype, 0.5, 2),
                               training, 0.1, 1e-5});
           }
         }
         return inputs;
       },
       {at::kFloat, at::kDouble},
       [](const In& in) {
         const Tensor mean = in[3].clone(), var = in[4].clone();
         const auto result = at::native_batch_norm(in[0], in.maybe(1), in.maybe(2), mean, var,
                                                   in.flag(5), in.real(6), in.real(7));
         Args results = {mean, var, std::get<0>(result)};
         if (in.flag(5)) {
           results.push_back(std::get<1>(result));
           results.push_back(std::get<2>(result));
         }
         return results;
       },
       kSummed},
      {"aclnnGroupNorm",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (int64_t groups : {1, 2, 4}) {
           inputs.push_back({source.Random({3, 4, 5, 2}, dtype), source.Random({4}, dtype),
                             source.Random({4}, dtype), int64_t{3}, int64_t{4}, int64_t{10}, groups,
                             1e-5});
           inputs.push_back({source.Random({3, 4, 10}, dtype), Null{}, Null{}, int64_t{3},
                             int64_t{4}, int64_t{10}, groups, 1e-5});
         }
         return inputs;
       },
       {at::kFloat, at::kDouble, at::kHalf},
       [](const In& in) {
         return at::native_group_norm(in[0], in.maybe(1), in.maybe(2), in.integer(3), in.integer(4),
                                      in.integer(5), in.integer(6), in.real(7));
       },
       kSummed},
      {"aclnnRmsNorm",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (const Ints& sizes : {Ints{4, 6}, Ints{2, 3, 8}, Ints{0, 8}, Ints{17, 128}}) {
           inputs.push_back(
               {source.Random(sizes, dtype), source.Random({sizes.back()}, dtype), 1e-6});
         }
         inputs.push_back({source.Random({2, 3, 4}, dtype), source.Random({3, 4}, dtype), 1e-6});
         inputs.push_back({source.Random({6, 9}, dtype).t(), source.Random({6}, dtype), 1e-6});
         return inputs;
       },
       {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16},
       [](const In& in) {
         Ints dims;
         for (int64_t i = in[0].dim() - in[1].dim(); i < in[0].dim(); ++i) dims.push_back(i);
         const bool narrow =
             in[0].scalar_type() == at::kHalf || in[0].scalar_type() == at::kBFloat16;
         const Tensor x = narrow ? in[0].to(at::kFloat) : in[0];
         const Tensor rstd = at::rsqrt(at::mean(x * x, dims, true) + in.real(2));
         const Tensor y = x * rstd * (narrow ? in[1].to(at::kFloat) : in[1]);
         return std::make_tuple(narrow ? y.to(in[0].scalar_type()) : y, rstd);
       },
       {8, 1e-6, false, "libtorch has no such operator; this composes it from others"}},
      {"aclnnRotaryPositionEmbedding",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (int64_t mode : {0, 1}) {
           inputs.push_back({source.Random({2, 5, 3, 8}, dtype), source.Random({1, 5, 1, 8}, dtype),
                             source.Random({1, 5, 1, 8}, dtype), mode});
           inputs.push_back({source.Random({2, 3, 5, 8}, dtype).transpose(1, 2),
                             source.Random({2, 5, 1, 8}, dtype), source.Random({1, 1, 1, 8}, dtype),
                             mode});
         }
         return inputs;
       },
       {at::kFloat, at::kDouble, at::kHalf},
       [](const In& in) {
         const bool narrow = in[0].scalar_type() == at::kHalf;
         const auto read = [&](int i) { return narrow ? in[i].to(at::kFloat) : in[i]; };
         const Tensor x = read(0);
         const int64_t width = x.size(-1);
         Tensor rotated = at::empty_like(x);
         for (int64_t i = 0; i < width; ++i) {
           const bool first = in.integer(3) == 0 ? i < width / 2 : i % 2 == 0;
           const int64_t other = in.integer(3) == 0 ? (i + width / 2) % width : i ^ 1;
           const Tensor partner = x.select(-1, other);
           rotated.select(-1, i).copy_(first ? -partner : partner);
         }
         const Tensor y = x * read(1) + rotated * read(2);
         return narrow ? y.to(at::kHalf) : y;
       }},
  };
}

struct Window {
  Ints kernel, stride, padding, dilation;
  bool ceil;
};

const std::vector<Window> kWindows = {
    {{2, 2}, {2, 2}, {0, 0}, {1, 1}, false}, {{3, 3}, {2, 2}, {1, 1}, {1, 1}, false},
    {{3, 2}, {1, 2}, {1, 0}, {2, 1}, false}, {{3, 3}, {2, 2}, {1, 1}, {1, 1}, true},
    {{2, 2}, {}, {0, 0}, {1, 1}, false},
};

Tensors Images(Source& source, at::ScalarType dtype) {
  return {source.Random({2, 3, 8, 9}, dtype), source.Random({3, 10, 7}, dtype),
          source.Random({2, 9, 7, 3}, dtype).permute({0, 3, 1, 2}),
          source.Random({2, 3, 20, 9}, dtype).slice(2, 1, 19, 2)};
}

Tensors Volumes(Source& source, at::ScalarType dtype) {
  return {source.Random({2, 3, 5, 6, 7}, dtype), source.Random({3, 6, 4, 7}, dtype),
          source.Random({2, 5, 6, 7, 3}, dtype).permute({0, 4, 1, 2, 3}),
          source.Random({2, 3, 12, 5, 4}, dtype).slice(2, 1, 11, 2)};
}

Inputs MaxWindows() {
  return [](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs;
    for (const Tensor& image : Images(source, dtype)) {
      for (const Window& w : kWindows) {
        inputs.push_back({image, w.kernel, w.stride, w.padding, w.dilation, w.ceil});
      }
    }
    return inputs;
  };
}

auto MaxPool(const In& in) {
  return at::max_pool2d_with_indices(in[0], in.ints(1), in.ints(2), in.ints(3), in.ints(4),
                                     in.flag(5));
}

// The packed mask of libtorch's indices: per plane and window position one bit per output.
Tensor PackedMask(const In& in, const Tensor& out, const Tensor& indices) {
  const int64_t kernel_h = in.ints(1)[0], kernel_w = in.ints(1)[1];
  const Ints stride = in.ints(2).empty() ? in.ints(1) : in.ints(2);
  const int64_t columns = out.size(-1), outputs = out.size(-2) * columns, width = in[0].size(-1);
  Ints sizes(out.sizes().begin(), out.sizes().end() - 2);
  sizes.insert(sizes.end(), {kernel_h * kernel_w, ((outputs + 15) / 16 + 1) * 32});
  const Tensor mask = at::zeros(sizes, at::kChar);
  const Tensor rows = mask.view({-1, kernel_h * kernel_w, sizes.back()});
  const Tensor chosen = indices.reshape({-1, outputs});
  for (int64_t plane = 0; plane < chosen.size(0); ++plane) {
    for (int64_t o = 0; o < outputs; ++o) {
      const int64_t index = chosen[plane][o].item().toLong();
      const int64_t y = index / width - (o / columns * stride[0] - in.ints(3)[0]);
      const int64_t x = index % width - (o % columns * stride[1] - in.ints(3)[1]);
      const int64_t position = y / in.ints(4)[0] * kernel_w + x / in.ints(4)[1];
      auto* byte = static_cast<uint8_t*>(rows[plane][position].data_ptr()) + o / 8;
      *byte = static_cast<uint8_t>(*byte | 1u << (o % 8));
    }
  }
  return mask;
}

Rows Pools() {
  return {
      {"aclnnMaxPool2dWithMask",
       MaxWindows(),
       {at::kFloat, at::kHalf},
       [](const In& in) {
         const bool half = in[0].scalar_type() == at::kHalf;
         Args wide = {half ? in[0].to(at::kFloat) : in[0],
                      in.ints(1),
                      in.ints(2),
                      in.ints(3),
                      in.ints(4),
                      in.flag(5)};
         const auto [out, indices] = MaxPool(In(wide));
         return std::make_tuple(out.to(in[0].scalar_type()), PackedMask(in, out, indices));
       }},
      {"aclnnMaxPool2dWithMaskBackward",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (const Args& forward : MaxWindows()(source, dtype)) {
           const auto [out, indices] = MaxPool(In(forward));
           inputs.push_back({source.Random(out.sizes(), dtype), forward[0],
                             PackedMask(In(forward), out, indices), forward[1], forward[2],
                             forward[3], forward[4], forward[5]});
         }
         return inputs;
       },
       {at::kFloat},
       [](const In& in) {
         const auto [out, indices] = at::max_pool2d_with_indices(
             in[1], in.ints(3), in.ints(4), in.ints(5), in.ints(6), in.flag(7));
         return at::max_pool2d_with_indices_backward(in[0], in[1], in.ints(3), in.ints(4),
                                                     in.ints(5), in.ints(6), in.flag(7), indices);
       }},
      {"aclnnMaxPool2dWithIndices", MaxWindows(), kFloats, MaxPool},
      {"aclnnMaxPool2dWithIndicesBackward",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (const Args& forward : MaxWindows()(source, at::kFloat)) {
           const auto [out, indices] = MaxPool(In(forward));
           for (at::ScalarType index : {at::kLong, at::kInt}) {
             inputs.push_back({source.Random(out.sizes(), dtype),
                               std::get<Tensor>(forward[0]).to(dtype), indices.to(index),
                               forward[1], forward[2], forward[3], forward[4], forward[5]});
           }
         }
         return inputs;
       },
       {at::kFloat, at::kDouble},
       [](const In& in) {
         return at::max_pool2d_with_indices_backward(in[0], in[1], in.ints(3), in.ints(4),
                                                     in.ints(5), in.ints(6), in.flag(7),
                                                     in[2].to(at::kLong));
       }},
      {"aclnnAvgPool2d",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (const Tensor& image : Images(source, dtype)) {
           for (const Window& w : kWindows) {
             for (int64_t divisor : {0, 3}) {
               inputs.push_back({image, w.kernel, w.stride, w.padding, w.ceil, divisor == 0,
                                 divisor, int64_t{0}});
             }
           }
         }
         return inputs;
       },
       kFloats,
       [](const In& in) {
         const auto divisor =
             in.integer(6) == 0 ? c10::optional<int64_t>() : c10::optional<int64_t>(in.integer(6));
         return at::avg_pool2d(in[0], in.ints(1), in.ints(2), in.ints(3), in.flag(4), in.flag(5),
                               divisor);
       },
       kSummed},
      {"aclnnAdaptiveAvgPool2d",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (const Tensor& image : Images(source, dtype)) {
           for (const Ints& size : {Ints{1, 1}, Ints{3, 2}, Ints{5, 7}}) {
             inputs.push_back({image, size});
           }
         }
         return inputs;
       },
       kFloats, [](const In& in) { return at::_adaptive_avg_pool2d(in[0], in.ints(1)); }, kSummed},
      {"aclnnAdaptiveMaxPool2d",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (const Tensor& image : Images(source, dtype)) {
           for (const Ints& size : {Ints{1, 1}, Ints{3, 2}}) inputs.push_back({image, size});
         }
         return inputs;
       },
       kFloats, [](const In& in) { return at::adaptive_max_pool2d(in[0], in.ints(1)); }},
      {"aclnnAdaptiveAvgPool2dBackward",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (const Tensor& image : Images(source, dtype)) {
           Ints sizes = image.sizes().vec();
           sizes[sizes.size() - 2] = 3;
           sizes[sizes.size() - 1] = 2;
           inputs.push_back({source.Random(sizes, dtype), image});
         }
         return inputs;
       },
       kFloats, [](const In& in) { return at::_adaptive_avg_pool2d_backward(in[0], in[1]); },
       kSummed},
      {"aclnnAdaptiveAvgPool3d",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (const Tensor& volume : Volumes(source, dtype)) {
           for (const Ints& size : {Ints{1, 1, 1}, Ints{3, 2, 4}, Ints{5, 6, 7}, Ints{2}}) {
             inputs.push_back({volume, size});
           }
         }
         return inputs;
       },
       kFloats,
       [](const In& in) {
         const Ints size = in.ints(1).size() == 1 ? Ints(3, in.ints(1)[0]) : in.ints(1);
         return at::_adaptive_avg_pool3d(InFloat(in[0]), size).to(in[0].scalar_type());
       },
       kSummed},
      {"aclnnAdaptiveAvgPool3dBackward",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (const Tensor& volume : Volumes(source, dtype)) {
           Ints sizes = volume.sizes().vec();
           std::copy_n(Ints{3, 2, 4}.begin(), 3, sizes.end() - 3);
           inputs.push_back({source.Random(sizes, dtype), volume});
         }
         return inputs;
       },
       kFloats,
       [](const In& in) {
         return at::_adaptive_avg_pool3d_backward(InFloat(in[0]), InFloat(in[1]))
             .to(in[0].scalar_type());
       },
       kSummed},
      {"aclnnUpsampleBilinear2d",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (bool align : {false, true}) {
           inputs.push_back({source.Random({2, 3, 4, 5}, dtype), Ints{8, 10}, align, 0.0, 0.0});
           inputs.push_back(
               {source.Random({2, 3, 5, 4}, dtype).transpose(2, 3), Ints{3, 7}, align, 0.0, 0.0});
         }
         return inputs;
       },
       {at::kFloat, at::kDouble, at::kHalf},
       [](const In& in) { return at::upsample_bilinear2d(in[0], in.ints(1), in.flag(2)); },
       kSummed},
      {"aclnnUpsampleNearest2d",
       [](Source& source, at::ScalarType dtype) {
         return std::vector<Args>{{source.Random({2, 3, 4, 5}, dtype), Ints{8, 10}},
                                  {source.Random({2, 3, 5, 4}, dtype).transpose(2, 3), Ints{3, 7}}};
       },
       kFloats, [](const In& in) { return at::upsample_nearest2d(in[0], in.ints(1)); }},
  };
}

// Scores, targets and a reduction.
Inputs LossInputs(Args extra = {}) {
  return [extra](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs;
    for (int64_t reduction : {0, 1, 2}) {
      for (const Tensor& view : source.Views(dtype)) {
        inputs.push_back({view, source.Random(view.sizes(), dtype), reduction});
        inputs.back().insert(inputs.back().end(), extra.begin(), extra.end());
      }
    }
    return inputs;
  };
}

// A gradient, scores, targets and a reduction.
Inputs LossGradientInputs(Args extra = {}) {
  return [extra](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs;
    for (int64_t reduction : {0, 1, 2}) {
      for (const Ints& sizes : {Ints{7}, Ints{5, 6}, Ints{2, 3, 4}}) {
        const Ints gradient = reduction == 0 ? sizes : Ints{};
        inputs.push_back({source.Random(gradient, dtype), source.Random(sizes, dtype),
                          source.Random(sizes, dtype), reduction});
        inputs.back().insert(inputs.back().end(), extra.begin(), extra.end());
      }
    }
    return inputs;
  };
}

Rows LossFunctions() {
  return {
      {"aclnnNLLLoss",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (int64_t reduction : {1, 2}) {
           for (bool weighted : {false, true}) {
             inputs.push_back({source.Random({6, 5}, dtype), source.Indices({6}, 5),
                               weighted ? Arg(source.Random({5}, dtype, 0.5, 2)) : Arg(Null{}),
                               reduction, int64_t{-100}});
             inputs.push_back({source.Random({5, 6}, dtype).t(), source.Indices({6}, 5), Null{},
                               reduction, int64_t{2}});
           }
         }
         return inputs;
       },
       {at::kFloat, at::kDouble, at::kHalf},
       [](const In& in) {
         return at::nll_loss_forward(in[0], in[1], in.maybe(2), in.integer(3), in.integer(4));
       }},
      {"aclnnMseLossBackward",
       LossGradientInputs(),
       {at::kFloat, at::kDouble},
       [](const In& in) { return at::mse_loss_backward(in[0], in[1], in[2], in.integer(3)); }},
      {"aclnnSmoothL1LossBackward",
       LossGradientInputs({0.5}),
       {at::kFloat, at::kDouble},
       [](const In& in) {
         return at::smooth_l1_loss_backward(in[0], in[1], in[2], in.integer(3), in.real(4));
       }},
      {"aclnnMseLoss",
       LossInputs(),
       {at::kFloat, at::kDouble},
       [](const In& in) { return at::mse_loss(in[0], in[1], in.integer(2)); },
       kSummed},
      {"aclnnRenorm",
       [](Source& source, at::ScalarType dtype) {
         return std::vector<Args>{
             {source.Random({4, 6}, dtype), at::Scalar(2), int64_t{0}, at::Scalar(1)},
             {source.Random({3, 2, 5}, dtype).transpose(0, 2), at::Scalar(1), int64_t{-1},
              at::Scalar(0.5)}};
       },
       {at::kFloat, at::kDouble},
       [](const In& in) { return at::renorm(in[0], in.number(1), in.integer(2), in.number(3)); },
       kSummed},
      {"aclnnL1Loss",
       LossInputs(),
       {at::kFloat, at::kDouble},
       [](const In& in) { return at::l1_loss(in[0], in[1], in.integer(2)); },
       kSummed},
      {"aclnnSmoothL1Loss",
       LossInputs({0.5}),
       {at::kFloat, at::kDouble},
       [](const In& in) { return at::smooth_l1_loss(in[0], in[1], in.integer(2), in.real(3)); },
       kSummed},
      {"aclnnMultilabelMarginLoss",
       [](Source& source, at::ScalarType dtype) {
         const Tensor target = at::tensor({3, 0, -1, 1, -1, 2, 1, 0}, at::kLong);
         std::vector<Args> inputs;
         for (int64_t reduction : {0, 1, 2}) {
           inputs.push_back({source.Random({2, 4}, dtype), target.view({2, 4}), reduction});
           inputs.push_back({source.Random({4}, dtype), target.slice(0, 0, 4), reduction});
         }
         return inputs;
       },
       {at::kFloat, at::kDouble},
       [](const In& in) { return at::multilabel_margin_loss_forward(in[0], in[1], in.integer(2)); },
       kSummed},
      {"aclnnKlDiv",
       LossInputs({true}),
       {at::kFloat, at::kDouble},
       [](const In& in) { return at::kl_div(in[0], in[1], in.integer(2), in.flag(3)); },
       kSummed},
  };
}

}  // namespace

Rows LayerRows() {
  Rows rows;
  for (auto family : {Normalisations, Pools, LossFunctions}) {
    for (Row& row : family()) {
      row.inplace = false;
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

}  // namespace acltape::opapi::grid
