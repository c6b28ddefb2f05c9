// Activations, softmax, and their gradients.
#include "tests/opapi/grid/row.h"

namespace acltape::opapi::grid {
namespace {

const Tolerance kVectorCode = {8, 1e-7, true,
                               "vector and scalar code of libtorch round differently"};

#define ONE(fn) [](const In& in) { return at::fn(in[0]); }

// Two tensors of one shape: a gradient and what the forward call read or gave.
Inputs Gradients(Args extra = {}, bool specials = true) {
  return [extra, specials](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs;
    Tensors views = source.Views(dtype);
    if (!specials) views.pop_back();
    for (const Tensor& view : views) {
      inputs.push_back({source.Random(view.sizes(), dtype), view});
      inputs.back().insert(inputs.back().end(), extra.begin(), extra.end());
    }
    return inputs;
  };
}

// A tensor and each of its dims, from the front and from the back.
Inputs AlongDims(bool gradient, bool halves = false) {
  return [=](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs;
    for (const Tensor& view : source.Views(dtype)) {
      // libtorch's gradients read such an output beyond its memory.
      if (gradient && Source::IsExpanded(view)) continue;
      for (int64_t dim = -view.dim(); dim < std::max<int64_t>(view.dim(), 1); dim += 2) {
        if (halves && (view.dim() == 0 || view.size(dim) % 2 != 0)) continue;
        Args args;
        if (gradient) args.push_back(source.Random(view.sizes(), dtype));
        args.push_back(view);
        args.push_back(dim);
        inputs.push_back(args);
      }
    }
    if (!gradient) inputs.push_back({at::full({2, 5}, -INFINITY, dtype), int64_t{1}});
    return inputs;
  };
}

Inputs EvenDims(bool gradient) {
  return [=](Source& source, at::ScalarType dtype) {
    std::vector<Args> inputs;
    const std::vector<std::pair<Tensor, int64_t>> cases = {
        {source.Random({6}, dtype), 0},
        {source.Random({3, 8}, dtype), -1},
        {source.Random({4, 5}, dtype), 0},
        {source.Random({8, 3}, dtype).t(), 1},
        {source.Random({2, 6, 5}, dtype), 1},
        {source.Random({0, 4}, dtype), 1},
        {source.Random({5, 22}, dtype).slice(1, 3, 19, 2), 1},
    };
    for (const auto& [tensor, dim] : cases) {
      Args args;
      if (gradient) {
        std::vector<int64_t> sizes = tensor.sizes().vec();
        sizes[dim < 0 ? dim + sizes.size() : dim] /= 2;
        args.push_back(source.Random(sizes, dtype));
      }
      args.push_back(tensor);
      args.push_back(dim);
      inputs.push_back(args);
    }
    return inputs;
  };
}

Rows Forward() {
  const at::Scalar one(1.0), half(0.5), twenty(20.0);
  return {
      {"aclnnRelu", OneTensor(), kAll, ONE(relu)},
      {"aclnnSigmoid", OneTensor(), kAll, ONE(sigmoid), kVectorCode, -100, 100},
      {"aclnnSilu", OneTensor(), kAll, ONE(silu), kVectorCode, -20, 20},
      {"aclnnGelu", OneTensor(), kAll, [](const In& in) { return at::gelu(in[0], "tanh"); },
       kVectorCode},
      {"aclnnGeluV2",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (const Tensor& view : source.Views(dtype)) {
           inputs.push_back({view, 0});
           inputs.push_back({view, 1});
         }
         return inputs;
       },
       kFloats, [](const In& in) { return at::gelu(in[0], in.integer(1) == 1 ? "tanh" : "none"); },
       kVectorCode},
      {"aclnnHardsigmoid", OneTensor(), kAll, ONE(hardsigmoid), kVectorCode, -5, 5},
      {"aclnnHardswish", OneTensor(), kAll, ONE(hardswish), kVectorCode, -5, 5},
      {"aclnnMish", OneTensor(), kFloats, ONE(mish), kVectorCode},
      {"aclnnSelu", OneTensor(), kFloats, ONE(selu), kVectorCode},
      {"aclnnLogSigmoid", OneTensor(), kFloats, ONE(log_sigmoid), kVectorCode},
      {"aclnnElu", OneTensor({at::Scalar(1.5), at::Scalar(1.1), at::Scalar(0.9)}), kAll,
       [](const In& in) { return at::elu(in[0], in.number(1), in.number(2), in.number(3)); },
       kVectorCode},
      {"aclnnCelu", OneTensor({half}), kFloats,
       [](const In& in) { return at::celu(in[0], in.number(1)); }, kVectorCode},
      {"aclnnLeakyRelu", OneTensor({half}), kAll,
       [](const In& in) { return at::leaky_relu(in[0], in.number(1)); }, kVectorCode},
      {"aclnnHardtanh", OneTensor({at::Scalar(-1.0), one}), kFloats,
       [](const In& in) { return at::hardtanh(in[0], in.number(1), in.number(2)); }},
      {"aclnnSoftplus", OneTensor({one, twenty}), kAll,
       [](const In& in) { return at::softplus(in[0], in.number(1), in.number(2)); }, kVectorCode},
      {"aclnnThreshold", OneTensor({half, at::Scalar(-2.0)}), kFloats,
       [](const In& in) { return at::threshold(in[0], in.number(1), in.number(2)); }},
      {"aclnnSoftmax", AlongDims(false), kFloats,
       [](const In& in) { return at::softmax(in[0], in.integer(1)); }, kVectorCode, -20, 20},
      {"aclnnLogSoftmax", AlongDims(false), kFloats,
       [](const In& in) { return at::log_softmax(in[0], in.integer(1)); }, kVectorCode, -20, 20},
      {"aclnnGlu", EvenDims(false), kFloats,
       [](const In& in) { return at::glu(in[0], in.integer(1)); }, kVectorCode},
      {"aclnnSwiGlu",
       EvenDims(false),
       {at::kFloat, at::kDouble, at::kHalf},
       [](const In& in) {
         const Tensors halves = in[0].chunk(2, in.integer(1));
         return at::silu(halves.at(0)) * halves.at(1);
       },
       kVectorCode},
      {"aclnnPrelu",
       [](Source& source, at::ScalarType dtype) {
         return std::vector<Args>{
             {source.Random({2, 3, 5}, dtype), source.Random({3}, dtype)},
             {source.Random({2, 3, 5}, dtype), source.Random({1}, dtype)},
             {source.Random({6, 4}, dtype).t(), source.Random({6}, dtype)},
         };
       },
       kFloats, [](const In& in) { return at::prelu(in[0], in[1]); }},
      {"aclnnLogit", OneTensor({0.05}), kNumbers,
       [](const In& in) { return at::logit(in[0], in.real(1)); }, kVectorCode, 0.01, 0.99},
  };
}

Rows Backward() {
  const at::Scalar one(1.0), half(0.5), twenty(20.0);
  return {
      {"aclnnGeluBackward", Gradients(), kFloats,
       [](const In& in) { return at::gelu_backward(in[0], in[1], "tanh"); }, kVectorCode},
      {"aclnnGeluBackwardV2", All({Gradients({"none"}), Gradients({"tanh"})}), kFloats,
       [](const In& in) { return at::gelu_backward(in[0], in[1], in.text(2)); }, kVectorCode},
      {"aclnnLogitGrad", Gradients({0.05}), kFloats,
       [](const In& in) { return at::logit_backward(in[1], in[0], in.real(2)); }, kVectorCode, 0.01,
       0.99},
      {"aclnnSiluBackward", Gradients(), kFloats,
       [](const In& in) { return at::silu_backward(in[0], in[1]); }, kVectorCode},
      {"aclnnSigmoidBackward", Gradients(), kFloats,
       [](const In& in) { return at::sigmoid_backward(in[0], in[1]); }, kVectorCode},
      {"aclnnTanhBackward", Gradients(), kFloats,
       [](const In& in) { return at::tanh_backward(in[0], in[1]); }, kVectorCode},
      {"aclnnThresholdBackward", Gradients({half}), kNumbers,
       [](const In& in) { return at::threshold_backward(in[0], in[1], in.number(2)); }},
      {"aclnnHardsigmoidBackward", Gradients(), kFloats,
       [](const In& in) { return at::hardsigmoid_backward(in[0], in[1]); }, kVectorCode},
      {"aclnnHardswishBackward", Gradients(), kFloats,
       [](const In& in) { return at::hardswish_backward(in[0], in[1]); }, kVectorCode},
      {"aclnnMishBackward", Gradients(), kFloats,
       [](const In& in) { return at::mish_backward(in[0], in[1]); }, kVectorCode},
      {"aclnnLeakyReluBackward", Gradients({half, false}), kFloats,
       [](const In& in) { return at::leaky_relu_backward(in[0], in[1], in.number(2), in.flag(3)); },
       kVectorCode},
      {"aclnnEluBackward",
       [](Source& source, at::ScalarType dtype) {
         std::vector<Args> inputs;
         for (const Tensor& view : source.Views(dtype)) {
           inputs.push_back({source.Random(view.sizes(), dtype), at::Scalar(1.5), at::Scalar(1.1),
                             at::Scalar(0.9), false, view});
         }
         inputs.push_back({source.Random({4, 5}, dtype), at::Scalar(1.5), at::Scalar(1.1),
                           at::Scalar(0.9), true, source.Random({4, 5}, dtype, -1, 3)});
         return inputs;
       },
       kFloats,
       [](const In& in) {
         return at::elu_backward(in[0], in.number(1), in.number(2), in.number(3), in.flag(4),
                                 in[5]);
       },
       kVectorCode},
      // The gradient at a NaN depends on whether libtorch's vector code or its scalar code meets
      // it.
      {"aclnnHardtanhBackward", Gradients({at::Scalar(-1.0), one}, false), kFloats,
       [](const In& in) {
         return at::hardtanh_backward(in[0], in[1], in.number(2), in.number(3));
       }},
      {"aclnnSoftplusBackward", Gradients({one, twenty}), kFloats,
       [](const In& in) { return at::softplus_backward(in[0], in[1], in.number(2), in.number(3)); },
       kVectorCode},
      {"aclnnSoftmaxBackward", AlongDims(true), kFloats,
       [](const In& in) {
         return at::_softmax_backward_data(in[0], in[1], in.integer(2), in[1].scalar_type());
       },
       kVectorCode},
      {"aclnnLogSoftmaxBackward", AlongDims(true), kFloats,
       [](const In& in) {
         return at::_log_softmax_backward_data(in[0], in[1], in.integer(2), in[1].scalar_type());
       },
       kVectorCode},
      {"aclnnGluBackward", EvenDims(true), kFloats,
       [](const In& in) { return at::glu_backward(in[0], in[1], in.integer(2)); }, kVectorCode},
  };
}

}  // namespace

Rows ActivationRows() {
  Rows rows = Forward();
  for (Row& row : Backward()) {
    row.inplace = false;
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace acltape::opapi::grid
