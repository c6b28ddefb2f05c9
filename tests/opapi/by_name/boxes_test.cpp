// Operators by name over boxes. The expected values are formulas of doubles, box by box, or those
// of the adapter's documentation.
#include <cmath>
#include <numbers>

#include "tests/opapi/by_name/named_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

struct Box {
  double x0, y0, x1, y1;
  double width() const { return x1 - x0; }
  double height() const { return y1 - y0; }
};

Box BoxOf(const Tensor& tensor) {
  const auto value = [&](int i) { return tensor[i].item<double>(); };
  return {value(0), value(1), value(2), value(3)};
}

Box Centred(const Box& box) {
  return {box.x0 - box.x1 / 2, box.y0 - box.y1 / 2, box.x0 + box.x1 / 2, box.y0 + box.y1 / 2};
}

Box CommonPart(const Box& a, const Box& b) {
  return {std::max(a.x0, b.x0), std::max(a.y0, b.y0), std::min(a.x1, b.x1), std::min(a.y1, b.y1)};
}

Box Around(const Box& a, const Box& b) {
  return {std::min(a.x0, b.x0), std::min(a.y0, b.y0), std::max(a.x1, b.x1), std::max(a.y1, b.y1)};
}

double AreaOf(const Box& box, double more = 0) {
  return (box.width() + more) * (box.height() + more);
}

double CommonArea(const Box& a, const Box& b, double more = 0) {
  const Box inner = CommonPart(a, b);
  return std::max(inner.width() + more, 0.0) * std::max(inner.height() + more, 0.0);
}

// `count` boxes of shape [count, 4] with corners within an image of 100 pixels.
Tensor RandomBoxes(int64_t count) {
  const Tensor first = at::rand({count, 2}) * 60;
  return at::cat({first, first + 2 + at::rand({count, 2}) * 38}, 1);
}

testing::AssertionResult Near(const Tensor& actual, const Tensor& wanted, double tolerance) {
  if (at::allclose(actual.to(at::kDouble), wanted, tolerance, tolerance)) {
    return testing::AssertionSuccess();
  }
  return testing::AssertionFailure() << actual << " instead of " << wanted;
}

TEST(BoxesByName, EachBoxIsComparedWithAllTrueBoxes) {
  at::manual_seed(1);
  const Tensor boxes = RandomBoxes(5), truths = RandomBoxes(3);
  for (const char* mode : {"iou", "iof"}) {
    for (float eps : {0.01f, 1.0f}) {
      Tensor wanted = at::zeros({3, 5}, at::kDouble);
      const double inside = eps < 1 ? 0 : 1;
      for (int64_t m = 0; m < 3; ++m) {
        for (int64_t n = 0; n < 5; ++n) {
          const Box a = BoxOf(boxes[n]), b = BoxOf(truths[m]);
          const double common = CommonArea(a, b, inside);
          const double all = AreaOf(a, eps) + AreaOf(b, eps) - common;
          wanted[m][n] = common / (std::string(mode) == "iof" ? AreaOf(b, eps) : all);
        }
      }
      for (at::ScalarType dtype : {at::kFloat, at::kHalf}) {
        const Tensor out = at::full({3, 5}, 77, dtype);
        NamedCall call("Iou");
        call.In(boxes.to(dtype)).In(truths.to(dtype)).Out(out).Set("mode", mode).Set("eps", eps);
        ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
        EXPECT_TRUE(Near(out, wanted, dtype == at::kHalf ? 1e-2 : 1e-5)) << mode << eps;
      }
    }
  }
}

TEST(BoxesByName, NoBoxesGiveAnEmptyTensor) {
  NamedCall call("PtIou");
  call.In(RandomBoxes(4)).In(at::empty({0, 4})).Out(at::empty({0, 4})).Set("mode", "iou");
  EXPECT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
}

TEST(BoxesByName, ACapturedComparisonRunsAgainOverNewBoxes) {
  at::manual_seed(4);
  const Tensor boxes = RandomBoxes(4), truths = RandomBoxes(2), out = at::full({2, 4}, 77.0f);
  aclrtStream stream = nullptr;
  TestStream();
  ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
  const auto call = [&](const Tensor& to) {
    NamedCall iou("Iou");
    iou.In(boxes).In(truths).Out(to).Set("mode", "iou").Set("eps", 0.01f);
    return iou.Launch(stream);
  };
  const auto free_memory = [] {
    size_t free_bytes = 0, total = 0;
    EXPECT_EQ(aclrtGetMemInfo(ACL_HBM_MEM, &free_bytes, &total), ACL_SUCCESS);
    return free_bytes;
  };
  const size_t free_before = free_memory();
  ASSERT_EQ(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL), ACL_SUCCESS);
  ASSERT_EQ(call(out), ACL_SUCCESS) << TakeMessage();
  aclmdlRI model = nullptr;
  ASSERT_EQ(aclmdlRICaptureEnd(stream, &model), ACL_SUCCESS);
  EXPECT_TRUE(SameBits(out, at::full({2, 4}, 77.0f)));
  for (int run = 0; run < 2; ++run) {
    boxes.copy_(RandomBoxes(4));
    ASSERT_EQ(aclmdlRIExecuteAsync(model, stream), ACL_SUCCESS);
    ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    const Tensor eager = at::zeros({2, 4});
    ASSERT_EQ(call(eager), ACL_SUCCESS) << TakeMessage();
    ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    EXPECT_TRUE(SameBits(out, eager));
    EXPECT_GT(eager.abs().sum().item<float>(), 0);
  }
  EXPECT_LT(free_memory(), free_before);
  EXPECT_EQ(aclmdlRIDestroy(model), ACL_SUCCESS);
  EXPECT_EQ(free_memory(), free_before);
  EXPECT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
}

TEST(BoxesByName, TheDefaultStreamComparesBoxesToo) {
  const Tensor boxes = at::tensor({0.0f, 0.0f, 2.0f, 2.0f}).view({1, 4}), out = at::zeros({1, 1});
  NamedCall call("Iou");
  call.In(boxes).In(boxes).Out(out).Set("mode", "iou").Set("eps", 1.0f);
  ASSERT_EQ(call.Run(nullptr), ACL_SUCCESS) << TakeMessage();
  EXPECT_EQ(out.item<float>(), 1);
}

void ExpectRefusal(NamedCall& call, const char* part) {
  TakeMessage();
  EXPECT_NE(call.Run(), ACL_SUCCESS);
  const std::string message = TakeMessage();
  EXPECT_NE(message.find(part), std::string::npos) << message;
}

TEST(BoxesByName, BoxesOfAnotherShapeOrTypeAreRefused) {
  {
    NamedCall call("Iou");
    call.In(at::zeros({3, 5})).In(RandomBoxes(2)).Out(at::zeros({2, 3}));
    ExpectRefusal(call,
                  "input 0 has the shape [3, 5] and the type 0; the soft device takes boxes "
                  "of shape [n, 4]");
  }
  {
    NamedCall call("Iou");
    call.In(RandomBoxes(3)).In(RandomBoxes(2).to(at::kInt)).Out(at::zeros({2, 3}));
    ExpectRefusal(call, "input 1 has the shape [2, 4] and the type 3");
  }
  {
    NamedCall call("Iou");
    call.In(RandomBoxes(3)).In(RandomBoxes(2)).Out(at::zeros({3, 2}));
    ExpectRefusal(call, "output 0 has the shape [3, 2], expected [2, 3]");
  }
  {
    NamedCall call("Iou");
    call.In(RandomBoxes(3)).In(RandomBoxes(2)).Out(at::zeros({2, 3})).Set("mode", "giou");
    ExpectRefusal(call, "mode is \"giou\", expected \"iou\" or \"iof\"");
  }
  {
    NamedCall call("GIoU");
    call.In(at::zeros({4, 3})).In(at::zeros({4, 3})).Out(at::zeros({3, 3}));
    call.Set("is_cross", true);
    ExpectRefusal(call, "the soft device compares each box with the one at its place");
  }
}

// The results of the three operators for pairs of boxes, for one pair.
struct PairResults {
  double general, distance, complete, angles;
};

PairResults OfPair(const Box& a, const Box& b, bool iof) {
  const auto square = [](double value) { return value * value; };
  const double common = CommonArea(a, b);
  const double divisor = iof ? AreaOf(b) : AreaOf(a) + AreaOf(b) - common;
  const Box outer = Around(a, b);
  const double apart =
      (square((a.x0 + a.x1 - b.x0 - b.x1) / 2) + square((a.y0 + a.y1 - b.y0 - b.y1) / 2)) /
      (square(outer.width()) + square(outer.height()));
  const double overlap = common / divisor;
  const double angles = std::atan(b.width() / b.height()) - std::atan(a.width() / a.height());
  const double v = 4 / square(std::numbers::pi) * square(angles);
  return {overlap - (AreaOf(outer) - divisor) / AreaOf(outer), overlap - apart,
          overlap - apart - v * v / (v - overlap + 1), angles};
}

TEST(BoxesByName, PairsOfBoxesAreComparedByAreaDistanceAndRatio) {
  at::manual_seed(2);
  constexpr int64_t kPairs = 7;
  for (bool centred : {false, true}) {
    for (const char* mode : {"iou", "iof"}) {
      const Tensor a = RandomBoxes(kPairs), b = RandomBoxes(kPairs);
      Tensor general = at::zeros({1, kPairs}, at::kDouble);
      Tensor distance = general.clone(), complete = general.clone(), angles = general.clone();
      for (int64_t i = 0; i < kPairs; ++i) {
        const Box first = centred ? Centred(BoxOf(a[i])) : BoxOf(a[i]);
        const Box second = centred ? Centred(BoxOf(b[i])) : BoxOf(b[i]);
        const PairResults of = OfPair(first, second, std::string(mode) == "iof");
        general[0][i] = of.general;
        distance[0][i] = of.distance;
        complete[0][i] = of.complete;
        angles[0][i] = of.angles;
      }
      const auto run = [&](const char* name, const Tensor& out, const Tensor& more) {
        NamedCall call(name);
        call.In(a.t().contiguous()).In(b.t().contiguous()).Out(out);
        if (more.defined()) call.Out(more).Set("atan_sub_flag", true);
        call.Set("trans", centred).Set("is_cross", false).Set("mode", mode);
        return call.Run();
      };
      const Tensor out = at::full({1, kPairs}, 77.0f), second = at::full({1, kPairs}, 77.0f);
      ASSERT_EQ(run("GIoU", out, {}), ACL_SUCCESS) << TakeMessage();
      EXPECT_TRUE(Near(out, general, 1e-5)) << mode << centred;
      ASSERT_EQ(run("DIoU", out, {}), ACL_SUCCESS) << TakeMessage();
      EXPECT_TRUE(Near(out, distance, 1e-5)) << mode << centred;
      ASSERT_EQ(run("CIoU", out, second), ACL_SUCCESS) << TakeMessage();
      EXPECT_TRUE(Near(out, complete, 1e-5)) << mode << centred;
      EXPECT_TRUE(Near(second, angles, 1e-5)) << mode << centred;
    }
  }
}

// The overlap of pairs of boxes [4, n] by operators that PyTorch differentiates.
Tensor Differentiable(const std::string& name, const Tensor& a, const Tensor& b, bool centred) {
  const auto corners = [&](const Tensor& box) {
    if (!centred) return box;
    return at::cat(
        {box.slice(0, 0, 2) - box.slice(0, 2) / 2, box.slice(0, 0, 2) + box.slice(0, 2) / 2});
  };
  const Tensor first = corners(a), second = corners(b);
  const auto sides = [](const Tensor& box) { return box.slice(0, 2) - box.slice(0, 0, 2); };
  const auto least = [](const Tensor& box) { return box.slice(0, 0, 2); };
  const auto most = [](const Tensor& box) { return box.slice(0, 2); };
  const Tensor inner =
      at::clamp_min(
          at::minimum(most(first), most(second)) - at::maximum(least(first), least(second)), 0)
          .prod(0);
  const Tensor all = sides(first).prod(0) + sides(second).prod(0) - inner;
  const Tensor outer =
      at::maximum(most(first), most(second)) - at::minimum(least(first), least(second));
  const Tensor overlap = inner / all;
  if (name == "GIoU") return overlap - (outer.prod(0) - all) / outer.prod(0);
  const Tensor apart = (least(first) + most(first) - least(second) - most(second)) / 2;
  const Tensor distance = overlap - apart.square().sum(0) / outer.square().sum(0);
  if (name == "DIoU") return distance;
  const auto angle = [&](const Tensor& box) { return at::atan(sides(box)[0] / sides(box)[1]); };
  const Tensor v =
      4 / (std::numbers::pi * std::numbers::pi) * (angle(second) - angle(first)).square();
  return distance - v * (v / (v - overlap + 1)).detach();
}

TEST(BoxesByName, OverlapsOfPairsHaveGradientsForBothBoxes) {
  at::manual_seed(5);
  for (const std::string name : {"GIoU", "DIoU", "CIoU"}) {
    for (bool centred : {false, true}) {
      const at::AutoGradMode enabled(true);
      const Tensor a = RandomBoxes(9).t().contiguous().requires_grad_();
      const Tensor b = RandomBoxes(9).t().contiguous().requires_grad_();
      const Tensor gradient = Random({9});
      Differentiable(name, a, b, centred).backward(gradient);
      const at::AutoGradMode disabled(false);
      const Tensor of_a = at::full({4, 9}, 77.0f), of_b = at::full({4, 9}, 77.0f);
      NamedCall call((name + "Grad").c_str());
      call.In(gradient).In(a.detach()).In(b.detach());
      if (name == "CIoU") {
        const auto angle = [&](const Tensor& box) {
          return centred ? at::atan(box[2] / box[3])
                         : at::atan((box[2] - box[0]) / (box[3] - box[1]));
        };
        call.In((angle(b) - angle(a)).detach().view({1, 9}));
      }
      call.Out(of_a).Out(of_b).Set("trans", centred).Set("is_cross", false).Set("mode", "iou");
      ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
      EXPECT_TRUE(Near(of_a, a.grad().to(at::kDouble), 1e-5)) << name << centred;
      EXPECT_TRUE(Near(of_b, b.grad().to(at::kDouble), 1e-5)) << name << centred;
    }
  }
  NamedCall wrong("GIoUGrad");
  wrong.In(at::zeros({8})).In(at::zeros({4, 9})).In(at::zeros({4, 9}));
  wrong.Out(at::zeros({4, 9})).Out(at::zeros({4, 9})).Set("is_cross", false);
  ExpectRefusal(wrong, "the gradient has the shape [8]");
}

TEST(BoxesByName, BoxesAreEncodedBesideAnchorsAndDecodedAgain) {
  const Tensor anchors = at::tensor({1.0f, 2.0f, 3.0f, 4.0f, 3.0f, 4.0f, 5.0f, 6.0f}).view({2, 4});
  const Tensor truths = at::tensor({5.0f, 6.0f, 7.0f, 8.0f, 7.0f, 8.0f, 9.0f, 6.0f}).view({2, 4});
  const std::vector<float> zeros(4, 0.0f), stds{0.1f, 0.1f, 0.2f, 0.2f};
  for (at::ScalarType dtype : {at::kFloat, at::kHalf}) {
    const Tensor out = at::full({2, 4}, 77, dtype);
    NamedCall call("BoundingBoxEncode");
    call.In(anchors.to(dtype)).In(truths.to(dtype)).Out(out);
    call.Set("means", zeros).Set("stds", stds);
    ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
    // By the vendor's documentation, which shows what float16 rounds: 13.3281 and -5.4922.
    const Tensor wanted =
        at::tensor({40 / 3.0, 40 / 3.0, 0.0, 0.0, 40 / 3.0, 20 / 3.0, 0.0, std::log(1 / 3.0) / 0.2})
            .view({2, 4});
    EXPECT_TRUE(Near(out, wanted, dtype == at::kHalf ? 2e-3 : 1e-5));
  }
  const Tensor out = at::full({2, 4}, 77.0f);
  NamedCall call("BoundingBoxDecode");
  call.In(anchors).In(truths).Out(out).Set("means", zeros);
  call.Set("stds", std::vector<float>(4, 1.0f)).Set("max_shape", std::vector<int64_t>{10, 10});
  call.Set("wh_ratio_clip", 0.1f);
  ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
  const Tensor wanted = at::tensor({2.5, 6.5, 9.0, 9.0, 9.0, 9.0, 9.0, 9.0}).view({2, 4});
  EXPECT_TRUE(Near(out, wanted, 1e-5));
}

TEST(BoxesByName, ADecodedBoxIsTheOneThatWasEncoded) {
  at::manual_seed(3);
  const Tensor anchors = RandomBoxes(6), truths = RandomBoxes(6);
  const std::vector<float> means{0.5f, 0.25f, -0.5f, 0.125f}, stds{0.5f, 2.0f, 0.25f, 1.0f};
  const Tensor deltas = at::empty({6, 4}), again = at::empty({6, 4});
  NamedCall encode("BoundingBoxEncode");
  encode.In(anchors).In(truths).Out(deltas).Set("means", means).Set("stds", stds);
  ASSERT_EQ(encode.Run(), ACL_SUCCESS) << TakeMessage();
  NamedCall decode("BoundingBoxDecode");
  decode.In(anchors).In(deltas).Out(again).Set("means", means).Set("stds", stds);
  decode.Set("max_shape", std::vector<int64_t>{1000, 1000}).Set("wh_ratio_clip", 0.001f);
  ASSERT_EQ(decode.Run(), ACL_SUCCESS) << TakeMessage();
  EXPECT_TRUE(Near(again, truths.to(at::kDouble), 1e-3));
  NamedCall wrong("BoundingBoxDecode");
  wrong.In(anchors).In(deltas).Out(again).Set("max_shape", std::vector<int64_t>{1000});
  ExpectRefusal(wrong, "max_shape has 1 numbers");
}

TEST(BoxesByName, YoloBoxesHaveTheirCentreWithinTheCell) {
  const Tensor anchors = at::tensor({0.0f, 0.0f, 4.0f, 8.0f, 2.0f, 2.0f, 6.0f, 4.0f}).view({2, 4});
  const Tensor truths = at::tensor({1.0f, 2.0f, 5.0f, 4.0f, 9.0f, 2.0f, 9.0f, 6.0f}).view({2, 4});
  const Tensor out = at::full({2, 4}, 77.0f);
  NamedCall call("YoloBoxesEncode");
  call.In(anchors).In(truths).In(at::tensor({2, 4}, at::kInt)).Out(out);
  call.Set("performance_mode", "high_precision");
  ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
  // The first: centres (2, 4) and (3, 3), sizes (4, 8) and (4, 2), a stride of 2. The second:
  // centres (4, 3) and (9, 4), sizes (4, 2) and (0, 4), a stride of 4.
  const Tensor wanted = at::tensor({1 - 1e-6, 1e-6, 0.0, std::log(0.25), 1 - 1e-6, 0.75,
                                    std::log(1e-6), std::log(2.0)})
                            .view({2, 4});
  EXPECT_TRUE(Near(out, wanted, 1e-5));
  NamedCall wrong("YoloBoxesEncode");
  wrong.In(anchors).In(truths).In(at::tensor({2}, at::kInt)).Out(out);
  ExpectRefusal(wrong, "stride has the shape [1] and the type 3, expected [2] and int32");
}

TEST(BoxesByName, AnchorsAreFlaggedWhereBoxesHaveTheirCentre) {
  // Centres (3, 3), (98, 49) and (-5, 1000): the cells (1, 1), the last one, and those at a border.
  const Tensor boxes = at::tensor({2.0f, 2.0f, 4.0f, 4.0f, 97.0f, 48.0f, 99.0f, 50.0f, -6.0f,
                                   999.0f, -4.0f, 1001.0f})
                           .view({3, 4});
  const Tensor out = at::full({5 * 7 * 2}, 77, at::kByte);
  NamedCall call("AnchorResponseFlags");
  call.In(boxes).Out(out).Set("featmap_size", std::vector<int64_t>{5, 7});
  call.Set("strides", std::vector<int64_t>{3, 3}).Set("num_base_anchors", int64_t{2});
  ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
  const Tensor wanted = at::zeros({5, 7, 2}, at::kByte);
  wanted[1][1].fill_(1);
  wanted[4][6].fill_(1);
  wanted[4][0].fill_(1);
  EXPECT_TRUE(SameBits(out, wanted.view({-1})));
  NamedCall none("AnchorResponseFlags");
  none.In(at::empty({0, 4})).Out(out).Set("featmap_size", std::vector<int64_t>{5, 7});
  none.Set("strides", std::vector<int64_t>{3, 3}).Set("num_base_anchors", int64_t{2});
  ASSERT_EQ(none.Run(), ACL_SUCCESS) << TakeMessage();
  EXPECT_TRUE(SameBits(out, at::zeros({70}, at::kByte)));
  NamedCall wrong("AnchorResponseFlags");
  wrong.In(boxes).Out(out).Set("featmap_size", std::vector<int64_t>{5});
  wrong.Set("strides", std::vector<int64_t>{3, 3}).Set("num_base_anchors", int64_t{2});
  ExpectRefusal(wrong, "featmap_size is [5]");
}

}  // namespace
}  // namespace acltape::opapi
