// Suppression of boxes by the names of the operators, beside formulas of doubles that go from box
// to box.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "tests/opapi/by_name/named_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

struct Corners {
  double x0, y0, x1, y1;

  double area() const { return (x1 - x0) * (y1 - y0); }
};

Corners CornersAt(const Tensor& row) {
  const auto number = [&](int i) { return row[i].item<double>(); };
  return {number(0), number(1), number(2), number(3)};
}

double OverlapOf(const Corners& a, const Corners& b) {
  const double width = std::max(std::min(a.x1, b.x1) - std::max(a.x0, b.x0), 0.0);
  const double height = std::max(std::min(a.y1, b.y1) - std::max(a.y0, b.y0), 0.0);
  const double inner = width * height, all = a.area() + b.area() - inner;
  return inner > 0 ? inner / all : 0;
}

// Goes through the boxes in an order and keeps those that none of the kept ones overlaps too far.
std::vector<int> KeptOf(const std::vector<Corners>& boxes, const std::vector<int>& order,
                        double threshold) {
  std::vector<int> kept;
  for (int i : order) {
    const auto takes = [&](int by) { return OverlapOf(boxes[by], boxes[i]) > threshold; };
    if (std::none_of(kept.begin(), kept.end(), takes)) kept.push_back(i);
  }
  return kept;
}

// Boxes with corners on a grid of quarters: their overlaps are the same numbers in each type.
Tensor BoxesOnAGrid(int64_t count) {
  const Tensor first = at::randint(0, 24, {count, 2}), size = at::randint(1, 16, {count, 2});
  return at::cat({first, first + size}, 1).to(at::kFloat) / 4;
}

std::vector<int> Order(const std::vector<double>& scores, double above) {
  std::vector<int> order;
  for (int i = 0; i < static_cast<int>(scores.size()); ++i) {
    if (scores[i] > above) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return scores[a] > scores[b]; });
  return order;
}

std::vector<double> NumbersOf(const Tensor& row) {
  std::vector<double> numbers;
  for (int64_t i = 0; i < row.numel(); ++i) numbers.push_back(row[i].item<double>());
  return numbers;
}

void ExpectMask(const Tensor& rows, float threshold) {
  const int64_t n = rows.size(0);
  const Tensor boxes = at::full({n, 5}, 77, rows.scalar_type());
  const Tensor positions = at::full({n}, 77, at::kInt), mask = at::full({n}, 77, at::kByte);
  NamedCall call("NMSWithMask");
  call.In(rows).Out(boxes).Out(positions).Out(mask).Set("iou_threshold", threshold);
  ASSERT_EQ(call.RunOlder(), ACL_SUCCESS) << TakeMessage();
  std::vector<Corners> corners;
  for (int64_t i = 0; i < n; ++i) corners.push_back(CornersAt(rows[i]));
  std::vector<int> order(n);
  std::iota(order.begin(), order.end(), 0);
  const Tensor wanted = at::zeros({n}, at::kByte);
  for (int i : KeptOf(corners, order, threshold)) wanted[i] = 1;
  EXPECT_TRUE(at::equal(mask, wanted)) << threshold << mask << wanted;
  EXPECT_TRUE(at::equal(boxes, rows.slice(1, 0, 5)));
  EXPECT_TRUE(at::equal(positions, at::arange(n, at::kInt)));
}

TEST(SuppressionByName, AMaskOfTheBoxesThatNoEarlierOneTakes) {
  at::manual_seed(3);
  for (float threshold : {0.0f, 0.3001f, 0.5503f, 0.9501f}) {
    ExpectMask(at::cat({BoxesOnAGrid(70), at::rand({70, 1})}, 1), threshold);
  }
  // The scores have no meaning, and rows may have eight numbers.
  const Tensor rows = at::cat({BoxesOnAGrid(9), at::arange(9).view({9, 1}), at::rand({9, 3})}, 1);
  for (at::ScalarType type : {at::kFloat, at::kHalf, at::kBFloat16}) {
    ExpectMask(rows.to(type), 0.2003f);
  }
  ExpectMask(at::ones({1, 5}), 0.5f);
  ExpectMask(at::zeros({0, 5}), 0.5f);
  ExpectMask(at::zeros({3, 5}), 0.0f);  // boxes without an area
}

// More boxes than the operator compares at a time: the last ones are copies of the first.
TEST(SuppressionByName, BoxesOfALaterGroupAreTakenByThoseOfAnEarlierOne) {
  const Tensor corner = at::arange(1100, at::kFloat).view({-1, 1}) * 2;
  const Tensor apart = at::cat({corner, corner, corner + 1, corner + 1, corner}, 1);
  const Tensor rows = at::cat({apart, apart.slice(0, 0, 50)});
  const Tensor boxes = at::empty({1150, 5}), positions = at::empty({1150}, at::kInt);
  const Tensor mask = at::empty({1150}, at::kByte);
  NamedCall call("NMSWithMask");
  call.In(rows).Out(boxes).Out(positions).Out(mask);
  ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
  EXPECT_TRUE(at::equal(mask, at::cat({at::ones({1100}, at::kByte), at::zeros({50}, at::kByte)})));
}

// The example of torch_npu's documentation.
TEST(SuppressionByName, TheMaskOfTheDocumentation) {
  const Tensor rows = at::tensor({0.0f, 1.0f, 2.0f, 3.0f, 0.6f, 6.0f, 7.0f, 8.0f, 9.0f, 0.4f})
                          .view({2, 5})
                          .to(at::kHalf);
  const Tensor boxes = at::zeros({2, 5}, at::kHalf), positions = at::zeros({2}, at::kInt);
  const Tensor mask = at::zeros({2}, at::kByte);
  NamedCall call("NMSWithMask");
  call.In(rows).Out(boxes).Out(positions).Out(mask).Set("iou_threshold", 0.5f);
  ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
  EXPECT_TRUE(at::equal(boxes, rows));
  EXPECT_TRUE(at::equal(positions, at::tensor({0, 1}, at::kInt)));
  EXPECT_TRUE(at::equal(mask, at::tensor({1, 1}, at::kByte)));
}

struct Positions {
  int most;
  float overlap, least_score;
};

void ExpectPositions(const Tensor& boxes, const Tensor& scores, int64_t places,
                     const Positions& with, bool host) {
  const Tensor found = at::full({places}, 77, at::kInt), count = at::full({}, 77, at::kInt);
  const Tensor most = at::scalar_tensor(with.most, at::kInt);
  const Tensor overlap = at::scalar_tensor(with.overlap, at::kFloat),
               least = at::tensor(with.least_score);
  NamedCall call("NonMaxSuppressionV4");
  call.In(boxes).In(scores);
  for (const Tensor& number : {most, overlap, least}) host ? call.Host(number) : call.In(number);
  call.Out(found).Out(count).Set("pad_to_max_output_size", host);
  ASSERT_EQ(call.RunOlder(), ACL_SUCCESS) << TakeMessage();
  std::vector<Corners> corners;
  for (int64_t i = 0; i < boxes.size(0); ++i) {
    const Corners given = CornersAt(boxes[i]);
    corners.push_back({std::min(given.x0, given.x1), std::min(given.y0, given.y1),
                       std::max(given.x0, given.x1), std::max(given.y0, given.y1)});
  }
  std::vector<int> kept = KeptOf(corners, Order(NumbersOf(scores), with.least_score), with.overlap);
  kept.resize(std::min<size_t>(
      {kept.size(), static_cast<size_t>(places), static_cast<size_t>(std::max(with.most, 0))}));
  EXPECT_EQ(count.item<int>(), static_cast<int>(kept.size()));
  kept.resize(places, 0);
  EXPECT_TRUE(at::equal(found, at::tensor(kept, at::kInt))) << found << at::tensor(kept);
}

TEST(SuppressionByName, PositionsFromTheHighestScoreOn) {
  at::manual_seed(4);
  const Tensor boxes = BoxesOnAGrid(40), scores = at::rand({40});
  for (bool host : {false, true}) {
    ExpectPositions(boxes, scores, 20, {20, 0.4f, 0.3f}, host);
    ExpectPositions(boxes, scores, 20, {3, 0.4f, 0.3f}, host);
    ExpectPositions(boxes, scores, 50, {50, 0.875f, -1}, host);
    ExpectPositions(boxes, scores, 5, {5, 0.1f, 2}, host);
  }
  // Corners in any order, equal scores, and copies of a box.
  ExpectPositions(boxes.index_select(1, at::tensor({2, 1, 0, 3})), scores, 12, {12, 0.25f, 0},
                  false);
  ExpectPositions(at::cat({boxes, boxes}), at::ones({80}), 30, {30, 0.5f, 0}, false);
  ExpectPositions(at::cat({boxes, boxes}), at::ones({80}), 80, {80, 1.0f, 0}, false);
  ExpectPositions(boxes.to(at::kHalf), scores.to(at::kHalf), 20, {20, 0.5f, 0.25f}, false);
  ExpectPositions(at::ones({1, 4}), at::ones({1}), 2, {2, 0.5f, 0}, false);
  ExpectPositions(at::zeros({0, 4}), at::zeros({0}), 3, {3, 0.5f, 0}, false);
}

struct ByClass {
  float least_score, overlap;
  int64_t each, total;
  bool turned = false, to_window = false;
  Tensor window, counts;
};

// Cuts a box at a window, and gives it in parts of the window.
Corners InWindow(Corners box, const Tensor& window, bool to_window) {
  const Corners limits = CornersAt(window);
  box = {std::max(box.x0, limits.x0), std::max(box.y0, limits.y0), std::min(box.x1, limits.x1),
         std::min(box.y1, limits.y1)};
  if (!to_window) return box;
  const double width = limits.x1 - limits.x0, height = limits.y1 - limits.y0;
  return {(box.x0 - limits.x0) / width, (box.y0 - limits.y0) / height, (box.x1 - limits.x0) / width,
          (box.y1 - limits.y0) / height};
}

struct Result {
  double score;
  int64_t of_class;
  Corners box;
};

// boxes [n, q, 4] and scores [n, c] of one image. The order of the two axes of a box has no
// meaning, so x stands for y here.
std::vector<Result> ResultsOf(const Tensor& boxes, const Tensor& scores, const ByClass& with,
                              int64_t image) {
  std::vector<Result> results;
  const int64_t count = with.counts.defined() ? with.counts[image].item<int>() : boxes.size(0);
  for (int64_t c = 0; c < scores.size(1); ++c) {
    std::vector<Corners> corners;
    std::vector<double> of_class = NumbersOf(scores.select(1, c));
    for (int64_t i = 0; i < boxes.size(0); ++i) {
      Corners box = CornersAt(boxes[i][boxes.size(1) == 1 ? 0 : c]);
      if (with.window.defined()) box = InWindow(box, with.window[image], with.to_window);
      if (i >= count || box.x1 <= box.x0 || box.y1 <= box.y0) of_class[i] = -INFINITY;
      corners.push_back(box);
    }
    std::vector<int> kept = KeptOf(corners, Order(of_class, with.least_score), with.overlap);
    kept.resize(std::min<size_t>(kept.size(), with.each));
    for (int i : kept) results.push_back({of_class[i], c, corners[i]});
  }
  std::stable_sort(results.begin(), results.end(),
                   [](const Result& a, const Result& b) { return a.score > b.score; });
  results.resize(std::min<size_t>(results.size(), with.total));
  return results;
}

void ExpectResults(const Tensor& boxes, const Tensor& scores, const ByClass& with) {
  const int64_t images = scores.size(0), total = with.total;
  const at::ScalarType type = scores.scalar_type();
  const Tensor of_boxes = at::full({images, total, 4}, 77, type);
  const Tensor of_scores = at::full({images, total}, 77, type), classes = of_scores.clone();
  const Tensor counts = at::full({images}, 77, at::kInt);
  NamedCall call("BatchMultiClassNonMaxSuppression");
  call.In(with.turned ? boxes.permute({0, 2, 3, 1}).contiguous() : boxes).In(scores);
  if (with.window.defined() || with.counts.defined()) {
    with.window.defined() ? call.In(with.window) : call.None();
    with.counts.defined() ? call.In(with.counts) : call.None();
  }
  call.Out(of_boxes).Out(of_scores).Out(classes).Out(counts);
  call.Set("score_threshold", with.least_score).Set("iou_threshold", with.overlap);
  call.Set("max_size_per_class", with.each).Set("max_total_size", with.total);
  call.Set("change_coordinate_frame", with.to_window).Set("transpose_box", with.turned);
  ASSERT_EQ(call.RunOlder(), ACL_SUCCESS) << TakeMessage();
  for (int64_t image = 0; image < images; ++image) {
    const std::vector<Result> wanted = ResultsOf(boxes[image], scores[image], with, image);
    ASSERT_EQ(counts[image].item<int>(), static_cast<int>(wanted.size())) << image;
    for (int64_t i = 0; i < total; ++i) {
      const bool there = i < static_cast<int64_t>(wanted.size());
      const Result result = there ? wanted[i] : Result{};
      EXPECT_EQ(of_scores[image][i].item<double>(), result.score) << image << " " << i;
      EXPECT_EQ(classes[image][i].item<double>(), static_cast<double>(result.of_class));
      const Corners found = CornersAt(of_boxes[image][i]);
      for (double Corners::*number : {&Corners::x0, &Corners::y0, &Corners::x1, &Corners::y1}) {
        EXPECT_NEAR(found.*number, result.box.*number, type == at::kHalf ? 2e-3 : 1e-6);
      }
    }
  }
}

TEST(SuppressionByName, TheBestBoxesOfSeveralClasses) {
  at::manual_seed(5);
  const Tensor shared = BoxesOnAGrid(24).view({2, 12, 1, 4});
  const Tensor of_classes = BoxesOnAGrid(72).view({2, 12, 3, 4});
  const Tensor scores = at::rand({2, 12, 3});
  for (const Tensor& boxes : {shared, of_classes}) {
    for (bool turned : {false, true}) {
      ExpectResults(boxes, scores, {0.3f, 0.5f, 4, 6, turned, false, {}, {}});
      ExpectResults(boxes, scores, {0.3f, 0.2f, 20, 50, turned, false, {}, {}});
      ExpectResults(boxes, scores, {0.0f, 1.0f, 2, 1, turned, false, {}, {}});
      ExpectResults(boxes, scores, {2.0f, 0.5f, 3, 3, turned, false, {}, {}});
    }
  }
  ExpectResults(of_classes.to(at::kHalf), scores.to(at::kHalf),
                {0.25f, 0.5f, 5, 8, false, false, {}, {}});
  // Equal scores: the first box, and the first class.
  ExpectResults(shared, at::ones({2, 12, 3}), {0.5f, 0.25f, 5, 9, false, false, {}, {}});
  // Boxes without an area are no results, nor are those with negative sizes.
  ExpectResults(at::cat({shared, shared.flip({3}), at::zeros({2, 1, 1, 4})}, 1),
                at::rand({2, 25, 2}), {0.0f, 0.5f, 25, 30, false, false, {}, {}});
  ExpectResults(at::tensor({0.0f, 0.0f, 1.0f, 1.0f}).view({1, 1, 1, 4}), at::ones({1, 1, 1}),
                {0.5f, 0.5f, 1, 1, false, false, {}, {}});
}

TEST(SuppressionByName, BoxesOfAWindowAndOfANumberThatCounts) {
  at::manual_seed(6);
  const Tensor boxes = BoxesOnAGrid(24).view({2, 12, 1, 4}), scores = at::rand({2, 12, 2});
  const Tensor window = at::tensor({1.0f, 0.5f, 5.0f, 6.5f, 0.0f, 1.0f, 4.0f, 3.0f}).view({2, 4});
  const Tensor counts = at::tensor({5, 0}, at::kInt);
  ExpectResults(boxes, scores, {0.1f, 0.4003f, 6, 9, false, false, window, {}});
  ExpectResults(boxes, scores, {0.1f, 0.4003f, 6, 9, false, true, window, {}});
  ExpectResults(boxes, scores, {0.1f, 0.4003f, 6, 9, false, false, {}, counts});
  ExpectResults(boxes, scores, {0.1f, 0.4003f, 6, 9, false, true, window, counts});
  // A window without a size has no results.
  const Tensor flat = at::tensor({1.0f, 2.0f, 1.0f, 3.0f}).view({1, 4});
  NamedCall call("BatchMultiClassNonMaxSuppression");
  const Tensor count = at::full({1}, 77, at::kInt), one = at::full({1, 1}, 77.0f);
  call.In(boxes.slice(0, 0, 1)).In(scores.slice(0, 0, 1)).In(flat);
  call.Out(at::full({1, 1, 4}, 77.0f)).Out(one).Out(at::full({1, 1}, 77.0f)).Out(count);
  call.Set("score_threshold", 0.0f).Set("iou_threshold", 0.5f).Set("change_coordinate_frame", true);
  call.Set("max_size_per_class", int64_t{1}).Set("max_total_size", int64_t{1});
  ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
  EXPECT_EQ(count.item<int>(), 0);
  EXPECT_EQ(one.item<float>(), 0);
}

// The number of boxes that are left is known on the device alone, and the call does not wait for
// it.
TEST(SuppressionByName, ACapturedCallRunsAgainOverNewBoxes) {
  at::manual_seed(7);
  const Tensor boxes = BoxesOnAGrid(12), scores = at::rand({12});
  const Tensor most = at::scalar_tensor(6, at::kInt), number = at::scalar_tensor(0.3, at::kFloat);
  const Tensor found = at::full({6}, 77, at::kInt), count = at::full({}, 77, at::kInt);
  aclrtStream stream = nullptr;
  TestStream();
  ASSERT_EQ(aclrtCreateStream(&stream), ACL_SUCCESS);
  const auto call = [&](const Tensor& positions, const Tensor& counts) {
    NamedCall suppress("NonMaxSuppressionV4");
    suppress.In(boxes).In(scores).In(most).In(number).In(number).Out(positions).Out(counts);
    return suppress.Launch(stream);
  };
  ASSERT_EQ(aclmdlRICaptureBegin(stream, ACL_MODEL_RI_CAPTURE_MODE_GLOBAL), ACL_SUCCESS);
  ASSERT_EQ(call(found, count), ACL_SUCCESS) << TakeMessage();
  aclmdlRI model = nullptr;
  ASSERT_EQ(aclmdlRICaptureEnd(stream, &model), ACL_SUCCESS);
  EXPECT_EQ(count.item<int>(), 77);
  for (int run = 0; run < 2; ++run) {
    boxes.copy_(BoxesOnAGrid(12));
    most.fill_(6 - run);
    ASSERT_EQ(aclmdlRIExecuteAsync(model, stream), ACL_SUCCESS);
    ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    const Tensor eager = at::zeros({6}, at::kInt), counts = at::zeros({}, at::kInt);
    ASSERT_EQ(call(eager, counts), ACL_SUCCESS) << TakeMessage();
    ASSERT_EQ(aclrtSynchronizeStream(stream), ACL_SUCCESS);
    EXPECT_TRUE(SameBits(found, eager));
    EXPECT_TRUE(SameBits(count, counts));
    EXPECT_GT(counts.item<int>(), 0);
  }
  EXPECT_EQ(aclmdlRIDestroy(model), ACL_SUCCESS);
  EXPECT_EQ(aclrtDestroyStream(stream), ACL_SUCCESS);
}

std::string RefusalOf(NamedCall& call) {
  TakeMessage();
  EXPECT_NE(call.Run(), ACL_SUCCESS);
  return TakeMessage();
}

TEST(SuppressionByName, MasksAndPositionsThatAreRefused) {
  const Tensor positions = at::zeros({3}, at::kInt), mask = at::zeros({3}, at::kByte);
  const auto of_mask = [&](const Tensor& rows, const Tensor& boxes, const Tensor& flags) {
    NamedCall call("NMSWithMask");
    return RefusalOf(call.In(rows).Out(boxes).Out(positions).Out(flags));
  };
  const Tensor rows = at::zeros({3, 5});
  EXPECT_NE(of_mask(at::zeros({3, 6}), rows, mask).find("expected [n, 5] or [n, 8]"),
            std::string::npos);
  EXPECT_NE(of_mask(rows.to(at::kDouble), rows, mask).find("the type 11"), std::string::npos);
  EXPECT_NE(of_mask(rows, rows.to(at::kHalf), mask).find("the same type, int32 and uint8"),
            std::string::npos);
  EXPECT_NE(of_mask(rows, at::zeros({2, 5}), mask).find("output 0 has the shape [2, 5]"),
            std::string::npos);
  EXPECT_NE(of_mask(rows, rows, at::zeros({4}, at::kByte)).find("output 2 has the shape [4]"),
            std::string::npos);
  const Tensor count = at::zeros({}, at::kInt), number = at::zeros({});
  const auto of_positions = [&](const Tensor& boxes, const Tensor& most, const Tensor& threshold,
                                const Tensor& out) {
    NamedCall call("NonMaxSuppressionV4");
    call.In(boxes).In(at::zeros({3})).In(most).In(threshold).In(number);
    return RefusalOf(call.Out(out).Out(count));
  };
  const Tensor boxes = at::zeros({3, 4});
  EXPECT_NE(of_positions(at::zeros({4, 4}), count, number, positions).find("expected [n, 4]"),
            std::string::npos);
  EXPECT_NE(of_positions(boxes, number, number, positions).find("max_output_size has the type 0"),
            std::string::npos);
  EXPECT_NE(of_positions(boxes, count, count, positions).find("the thresholds have 3 and 0"),
            std::string::npos);
  EXPECT_NE(of_positions(boxes, at::zeros({2}, at::kInt), number, positions)
                .find("max_output_size has the shape [2]"),
            std::string::npos);
  EXPECT_NE(of_positions(boxes, count, number, at::zeros({3, 1}, at::kInt))
                .find("expected one dim and one element"),
            std::string::npos);
}

TEST(SuppressionByName, FormsOfSeveralClassesThatAreRefused) {
  const auto said = [](const Tensor& boxes, const Tensor& scores, const char* name, int64_t value,
                       const Tensor& window = {}) {
    NamedCall call("BatchMultiClassNonMaxSuppression");
    call.In(boxes).In(scores);
    if (window.defined()) call.In(window);
    call.Out(at::zeros({2, 4, 4})).Out(at::zeros({2, 4})).Out(at::zeros({2, 4}));
    call.Out(at::zeros({2}, at::kInt));
    call.Set("score_threshold", 0.1f).Set("iou_threshold", 0.5f);
    call.Set("max_size_per_class", int64_t{4}).Set("max_total_size", int64_t{4});
    return RefusalOf(call.Set(name, value));
  };
  const Tensor boxes = at::zeros({2, 5, 1, 4}), scores = at::zeros({2, 5, 3});
  EXPECT_NE(said(at::zeros({2, 5, 2, 4}), scores, "x", 0).find("with q 1 or c"), std::string::npos);
  EXPECT_NE(said(boxes, at::zeros({2, 6, 3}), "x", 0).find("[2, 6, 3]"), std::string::npos);
  EXPECT_NE(said(boxes, scores, "max_total_size", 1001).find("max_total_size 1001"),
            std::string::npos);
  EXPECT_NE(said(boxes, scores, "max_size_per_class", 0).find("max_size_per_class is 0"),
            std::string::npos);
  EXPECT_NE(said(boxes, scores, "iou_threshold", 2).find("iou_threshold 2"), std::string::npos);
  EXPECT_NE(said(boxes, scores.to(at::kHalf), "x", 0).find("scores 1"), std::string::npos);
  EXPECT_NE(said(boxes, scores, "max_total_size", 3).find("output 0 has the shape [2, 4, 4]"),
            std::string::npos);
  EXPECT_NE(said(boxes, scores, "x", 0, at::zeros({4})).find("clip_window [b, 4]"),
            std::string::npos);
  NamedCall framed("BatchMultiClassNonMaxSuppression");
  framed.In(boxes).In(scores).Out(at::zeros({2, 4, 4})).Out(at::zeros({2, 4}));
  framed.Out(at::zeros({2, 4})).Out(at::zeros({2}, at::kInt));
  framed.Set("score_threshold", 0.1f).Set("iou_threshold", 0.5f);
  framed.Set("max_size_per_class", int64_t{4}).Set("max_total_size", int64_t{4});
  EXPECT_NE(
      RefusalOf(framed.Set("change_coordinate_frame", true)).find("change_coordinate_frame true"),
      std::string::npos);
}

}  // namespace
}  // namespace acltape::opapi
