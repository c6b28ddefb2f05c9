// Feature maps at places that are moved, by the names of the operators, beside a formula of doubles
// that goes from sample to sample.
#include <cmath>

#include "tests/opapi/by_name/named_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

struct DeformableLayer {
  int64_t kernel_height, kernel_width, groups;
  int64_t stride_height = 1, stride_width = 1, dilation_height = 1, dilation_width = 1;
  int64_t top = 0, bottom = 0, left = 0, right = 0;
};

// The places of the convolution along an axis.
int64_t PlacesOf(int64_t elements, int64_t kernel, int64_t stride, int64_t dilation,
                 int64_t margins) {
  return (elements + margins - dilation * (kernel - 1) - 1) / stride + 1;
}

std::vector<int64_t> OffsetsShape(const DeformableLayer& layer, const Tensor& x) {
  return {x.size(0),
          PlacesOf(x.size(1), layer.kernel_height, layer.stride_height, layer.dilation_height,
                   layer.top + layer.bottom),
          PlacesOf(x.size(2), layer.kernel_width, layer.stride_width, layer.dilation_width,
                   layer.left + layer.right),
          3 * layer.groups * layer.kernel_height * layer.kernel_width};
}

// The element of a map [h, w, c] at a place between its elements, of doubles; 0 outside of it.
Tensor ElementBetween(const Tensor& map, const Tensor& y, const Tensor& x) {
  Tensor sum = at::zeros({map.size(2)}, at::kDouble);
  const auto top = static_cast<int64_t>(std::floor(y.item<double>()));
  const auto left = static_cast<int64_t>(std::floor(x.item<double>()));
  for (int64_t row : {top, top + 1}) {
    for (int64_t column : {left, left + 1}) {
      if (row < 0 || column < 0 || row >= map.size(0) || column >= map.size(1)) continue;
      const Tensor down = row == top ? top + 1 - y : y - top;
      const Tensor across = column == left ? left + 1 - x : x - left;
      sum = sum + map[row][column] * down * across;
    }
  }
  return sum;
}

// x [n, h, w, c] and offsets [n, h, w, 3 * groups * kernel] of doubles. The result can be
// differentiated.
Tensor MovedByFormula(const DeformableLayer& layer, const Tensor& x, const Tensor& offsets) {
  const int64_t of_group = x.size(3) / layer.groups;
  const int64_t of_kernel = layer.kernel_height * layer.kernel_width;
  std::vector<Tensor> samples;
  for (int64_t image = 0; image < x.size(0); ++image) {
    for (int64_t row = 0; row < offsets.size(1) * layer.kernel_height; ++row) {
      for (int64_t column = 0; column < offsets.size(2) * layer.kernel_width; ++column) {
        const int64_t i = row / layer.kernel_height, down = row % layer.kernel_height;
        const int64_t j = column / layer.kernel_width, across = column % layer.kernel_width;
        for (int64_t group = 0; group < layer.groups; ++group) {
          const auto move = [&](int64_t part) {
            return offsets[image][i][j][(part * layer.groups + group) * of_kernel +
                                        down * layer.kernel_width + across];
          };
          const Tensor across_map =
              move(0) + (j * layer.stride_width - layer.left + across * layer.dilation_width);
          const Tensor down_map =
              move(1) + (i * layer.stride_height - layer.top + down * layer.dilation_height);
          const Tensor map = x[image].slice(2, group * of_group, (group + 1) * of_group);
          samples.push_back(ElementBetween(map, down_map, across_map) * move(2));
        }
      }
    }
  }
  return at::cat(samples).view({x.size(0), offsets.size(1) * layer.kernel_height,
                                offsets.size(2) * layer.kernel_width, x.size(3)});
}

void SetLayer(NamedCall& call, const DeformableLayer& layer, bool channels_last) {
  const auto four = [&](int64_t height, int64_t width) {
    return channels_last ? std::vector<int64_t>{1, height, width, 1}
                         : std::vector<int64_t>{1, 1, height, width};
  };
  call.Set("ksize", std::vector<int64_t>{layer.kernel_height, layer.kernel_width});
  call.Set("strides", four(layer.stride_height, layer.stride_width));
  call.Set("dilations", four(layer.dilation_height, layer.dilation_width));
  call.Set("pads", std::vector<int64_t>{layer.top, layer.bottom, layer.left, layer.right});
  call.Set("deformable_groups", layer.groups).Set("modulated", true);
  call.Set("data_format", channels_last ? "NHWC" : "NCHW");
}

Tensor InLayout(const Tensor& nhwc, bool channels_last) {
  return channels_last ? nhwc : nhwc.permute({0, 3, 1, 2}).contiguous();
}

// Zeros where nothing reads the tensor.
Tensor GradientOf(const Tensor& leaf) {
  return leaf.grad().defined() ? leaf.grad() : at::zeros_like(leaf);
}

// Calls both operators, and compares with the formula and its gradients.
void ExpectMoved(const DeformableLayer& layer, const Tensor& x, const Tensor& offsets,
                 bool channels_last) {
  const at::ScalarType type = x.scalar_type();
  Tensor x_leaf = x.to(at::kDouble).requires_grad_();
  Tensor offsets_leaf = offsets.to(at::kDouble).requires_grad_();
  Tensor wanted;
  {
    const at::AutoGradMode enabled(true);
    wanted = MovedByFormula(layer, x_leaf, offsets_leaf);
  }
  const Tensor gradient = Random(wanted.sizes(), type);
  {
    const at::AutoGradMode enabled(true);
    (wanted * gradient.to(at::kDouble)).sum().backward();
  }
  const double tolerance = type == at::kFloat ? 2e-4 : type == at::kHalf ? 2e-2 : 1e-1;
  const auto near = [&](const Tensor& found, const Tensor& reference) {
    return at::allclose(found.to(at::kDouble), InLayout(reference, channels_last), tolerance,
                        tolerance);
  };
  const Tensor given = InLayout(x, channels_last), moves = InLayout(offsets, channels_last);
  const Tensor y = at::full_like(InLayout(gradient, channels_last), 77);
  NamedCall call("DeformableOffsets");
  call.In(given).In(moves).Out(y);
  SetLayer(call, layer, channels_last);
  ASSERT_EQ(call.RunOlder(), ACL_SUCCESS) << TakeMessage();
  EXPECT_TRUE(near(y, wanted.detach()));

  const Tensor of_x = at::full_like(given, 77), of_offsets = at::full_like(moves, 77);
  NamedCall backward("DeformableOffsetsGrad");
  backward.In(InLayout(gradient, channels_last)).In(given).In(moves).Out(of_x).Out(of_offsets);
  SetLayer(backward, layer, channels_last);
  ASSERT_EQ(backward.RunOlder(), ACL_SUCCESS) << TakeMessage();
  EXPECT_TRUE(near(of_x, GradientOf(x_leaf)));
  EXPECT_TRUE(near(of_offsets, GradientOf(offsets_leaf)));
}

TEST(DeformableByName, SamplesMoveAndHaveGradients) {
  at::manual_seed(8);
  const DeformableLayer kLayers[] = {
      {3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1},
      {3, 2, 2, 2, 1, 1, 2, 1, 0, 2, 1},
      {1, 1, 4},
      {2, 3, 1, 1, 3, 2, 1, 0, 3, 0, 1},
  };
  for (const DeformableLayer& layer : kLayers) {
    const Tensor x = Random({2, 6, 5, 4});
    // Moves within the map, over its borders, and far outside of it.
    const Tensor offsets = Random(OffsetsShape(layer, x), at::kFloat, -3, 3);
    for (bool channels_last : {true, false}) ExpectMoved(layer, x, offsets, channels_last);
  }
  const DeformableLayer layer{2, 2, 2};
  const Tensor x = Random({1, 4, 4, 4});
  const Tensor offsets = Random(OffsetsShape(layer, x), at::kFloat, -2, 2);
  // Moves by quarters are the same numbers in each type.
  const Tensor quarters = (offsets * 4).round() / 4 + 0.125;
  ExpectMoved(layer, x.to(at::kHalf), quarters.to(at::kHalf), true);
  ExpectMoved(layer, x.to(at::kBFloat16), quarters.to(at::kBFloat16), true);
  ExpectMoved({1, 1, 1}, Random({1, 1, 1, 1}), Random({1, 1, 1, 3}), true);
}

// Without moves and with weights of 1 the result is that of unfold.
TEST(DeformableByName, WithoutMovesTheElementsOfEachKernelStandTogether) {
  const Tensor x = Random({2, 3, 5, 6});
  const Tensor offsets = at::zeros({2, 18, 4, 5});  // moves along x and y of 6 elements, weights
  offsets.slice(1, 12, 18).fill_(1);
  const Tensor y = at::full({2, 3, 8, 15}, 77.0f);
  NamedCall call("DeformableOffsets");
  call.In(x).In(offsets).Out(y).Set("data_format", "NCHW");
  call.Set("ksize", std::vector<int64_t>{2, 3}).Set("pads", std::vector<int64_t>{0, 0, 1, 0});
  call.Set("strides", std::vector<int64_t>{1, 1, 1, 1});
  ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
  const Tensor padded = at::constant_pad_nd(x, {1, 0}, 0);
  const Tensor wanted = at::im2col(padded, {2, 3}, {1, 1}, {0, 0}, {1, 1})
                            .view({2, 3, 2, 3, 4, 5})
                            .permute({0, 1, 4, 2, 5, 3})
                            .reshape({2, 3, 8, 15});
  EXPECT_TRUE(at::allclose(y, wanted, 1e-6, 1e-6));
}

// Elements outside of the map count nothing, also where they meet an element that is infinite.
TEST(DeformableByName, ElementsOutsideOfTheMapCountNothing) {
  const Tensor x = at::full({1, 1, 2, 1}, INFINITY);
  // The first sample lies one element before the map, and the second far after it.
  const Tensor offsets = at::tensor({-1.0f, 0.0f, 1.0f, 7.0f, 1.0f, 1.0f}).view({1, 2, 1, 3});
  const Tensor y = at::full({1, 2, 1, 1}, 77.0f);
  NamedCall call("DeformableOffsets");
  call.In(x).In(offsets).Out(y);
  SetLayer(call, {1, 1, 1, 1, 1, 1, 1, 0, 1, 0, 0}, true);
  ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
  EXPECT_TRUE(at::equal(y, at::zeros_like(y))) << y;
  const Tensor none = at::empty({0, 3, 3, 1});
  NamedCall empty("DeformableOffsets");
  empty.In(none).In(at::empty({0, 3, 3, 3})).Out(at::empty({0, 3, 3, 1}));
  SetLayer(empty, {1, 1, 1}, true);
  EXPECT_EQ(empty.Run(), ACL_SUCCESS) << TakeMessage();
}

// A captured call reads its inputs when the graph runs, and its memory is given back with the
// graph.
TEST(DeformableByName, ACapturedCallRunsAgainOverNewMoves) {
  const Tensor x = Random({1, 4, 4, 2}), offsets = Random({1, 4, 4, 3});
  const Tensor y = at::full_like(x, 77);
  aclrtStream stream = nullptr;
  TestStream();
  ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
  const auto call = [&](const Tensor& to) {
    NamedCall moved("DeformableOffsets");
    moved.In(x).In(offsets).Out(to);
    SetLayer(moved, {1, 1, 1}, true);
    return moved.Launch(stream);
  };
  ASSERT_EQ(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL), ACL_SUCCESS);
  ASSERT_EQ(call(y), ACL_SUCCESS) << TakeMessage();
  aclmdlRI model = nullptr;
  ASSERT_EQ(aclmdlRICaptureEnd(stream, &model), ACL_SUCCESS);
  EXPECT_TRUE(SameBits(y, at::full_like(x, 77)));
  for (int run = 0; run < 2; ++run) {
    offsets.copy_(Random({1, 4, 4, 3}));
    ASSERT_EQ(aclmdlRIExecuteAsync(model, stream), ACL_SUCCESS);
    ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    const Tensor eager = at::zeros_like(x);
    ASSERT_EQ(call(eager), ACL_SUCCESS) << TakeMessage();
    ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    EXPECT_TRUE(SameBits(y, eager));
  }
  EXPECT_EQ(aclmdlRIDestroy(model), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
}

TEST(DeformableByName, FormsThatAreRefused) {
  const Tensor x = at::zeros({1, 4, 4, 2}), offsets = at::zeros({1, 4, 4, 3});
  const auto said = [](NamedCall& call) {
    TakeMessage();
    EXPECT_NE(call.Run(), ACL_SUCCESS);
    return TakeMessage();
  };
  const auto forward = [&](const Tensor& map, const Tensor& moves, const Tensor& y,
                           const char* name, const char* value) {
    NamedCall call("DeformableOffsets");
    call.In(map).In(moves).Out(y);
    SetLayer(call, {1, 1, 1}, true);
    return said(call.Set(name, value));
  };
  EXPECT_NE(forward(x, offsets, x, "modulated", "false").find("modulated false"),
            std::string::npos);
  EXPECT_NE(forward(x, offsets, x, "data_format", "NC1HWC0").find("is \"NC1HWC0\""),
            std::string::npos);
  EXPECT_NE(forward(x, offsets, x, "strides", "1,1,1,2").find("strides [1, 1, 1, 2]"),
            std::string::npos);
  EXPECT_NE(forward(x, offsets, x, "pads", "0,0").find("pads [0, 0]"), std::string::npos);
  EXPECT_NE(forward(x, offsets, x, "deformable_groups", "2").find("of the 2 groups"),
            std::string::npos);
  EXPECT_NE(forward(x, at::zeros({1, 4, 4, 4}), x, "x", "").find("offsets [1, 4, 4, 4]"),
            std::string::npos);
  EXPECT_NE(forward(x, offsets, at::zeros({1, 4, 4, 3}), "x", "").find("output 0 has the shape"),
            std::string::npos);
  EXPECT_NE(forward(x, offsets.to(at::kHalf), x, "x", "").find("takes one type"),
            std::string::npos);
  NamedCall backward("DeformableOffsetsGrad");
  backward.In(at::zeros({1, 4, 3, 2})).In(x).In(offsets).Out(x).Out(offsets);
  SetLayer(backward, {1, 1, 1}, true);
  EXPECT_NE(said(backward).find("grad has the shape [1, 4, 3, 2]"), std::string::npos);
  NamedCall of_shape("DeformableOffsetsGrad");
  of_shape.In(x).In(x).In(offsets).Out(x).Out(at::zeros({1, 4, 4, 4}));
  SetLayer(of_shape, {1, 1, 1}, true);
  EXPECT_NE(said(of_shape).find("output 1 has the shape"), std::string::npos);
}

}  // namespace
}  // namespace acltape::opapi
