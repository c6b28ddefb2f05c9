// Operators over rotated boxes by their names, beside a formula of doubles that cuts one box with
// the sides of the other, and beside the vendor's examples.
#include <cmath>
#include <numeric>

#include "tests/opapi/by_name/named_call.h"

namespace acltape::opapi {
namespace {

using at::Tensor;

struct Point {
  double x, y;
};
using Polygon = std::vector<Point>;

// The corners of a box (x, y, w, h, angle in degrees).
Polygon CornersOf(const Tensor& box) {
  const auto number = [&](int i) { return box[i].item<double>(); };
  const double angle = number(4) * std::acos(-1.0) / 180;
  Polygon corners;
  const double signs[4][2] = {{-1, -1}, {1, -1}, {1, 1}, {-1, 1}};
  for (const auto& sign : signs) {
    const double along = sign[0] * number(2) / 2, across = sign[1] * number(3) / 2;
    corners.push_back({number(0) + along * std::cos(angle) - across * std::sin(angle),
                       number(1) + along * std::sin(angle) + across * std::cos(angle)});
  }
  return corners;
}

// Gives what is left of a polygon on the left of the line from a to b.
Polygon CutAt(const Polygon& polygon, const Point& a, const Point& b) {
  const auto side = [&](const Point& p) {
    return (b.x - a.x) * (p.y - a.y) - (b.y - a.y) * (p.x - a.x);
  };
  Polygon left;
  for (size_t i = 0; i < polygon.size(); ++i) {
    const Point &from = polygon[i], &to = polygon[(i + 1) % polygon.size()];
    const double of_from = side(from), of_to = side(to);
    if (of_from >= 0) left.push_back(from);
    if (of_from * of_to < 0) {
      const double part = of_from / (of_from - of_to);
      left.push_back({from.x + part * (to.x - from.x), from.y + part * (to.y - from.y)});
    }
  }
  return left;
}

double AreaOfPolygon(const Polygon& polygon) {
  double twice = 0;
  for (size_t i = 0; i < polygon.size(); ++i) {
    const Point &a = polygon[i], &b = polygon[(i + 1) % polygon.size()];
    twice += a.x * b.y - a.y * b.x;
  }
  return std::abs(twice) / 2;
}

double SharedByFormula(const Tensor& a, const Tensor& b) {
  Polygon common = CornersOf(a);
  const Polygon sides = CornersOf(b);
  for (size_t i = 0; i < 4; ++i) common = CutAt(common, sides[i], sides[(i + 1) % 4]);
  return AreaOfPolygon(common);
}

double OverlapByFormula(const Tensor& a, const Tensor& b) {
  const auto area = [](const Tensor& box) { return (box[2] * box[3]).item<double>(); };
  if (area(a) < 1e-14 || area(b) < 1e-14) return 0;
  const double inner = SharedByFormula(a, b);
  return inner / (area(a) + area(b) - inner);
}

std::vector<int> LeftByFormula(const Tensor& boxes, const Tensor& scores, double threshold,
                               double least_score, int64_t most) {
  std::vector<int> order(boxes.size(0)), left;
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return scores[a].item<float>() > scores[b].item<float>(); });
  for (int i : order) {
    if (scores[i].item<double>() < least_score) continue;
    if (most >= 0 && static_cast<int64_t>(left.size()) >= most) break;
    const auto taken = [&](int by) { return OverlapByFormula(boxes[by], boxes[i]) > threshold; };
    if (std::none_of(left.begin(), left.end(), taken)) left.push_back(i);
  }
  return left;
}

struct Suppression {
  float threshold = 0.2f, least_score = 0;
  int64_t most = -1;
};

// Calls the operator, and compares what its descriptions and its memory say.
void ExpectLeft(const Tensor& boxes, const Tensor& scores, const Suppression& with) {
  const Tensor selected = at::full(boxes.sizes(), 77.0f);
  const Tensor positions = at::full({boxes.size(0)}, 77, at::kInt);
  NamedCall call("RotatedNMS");
  call.In(boxes).In(scores).In(at::zeros({}, at::kInt)).Out(selected).Out(positions);
  call.Set("iou_threshold", with.threshold).Set("score_threshold", with.least_score);
  call.Set("max_output_size", with.most).Set("mode", int64_t{0});
  ASSERT_EQ(call.Run(), ACL_SUCCESS) << TakeMessage();
  const std::vector<int> wanted =
      LeftByFormula(boxes, scores, with.threshold, with.least_score, with.most);
  const auto count = static_cast<int64_t>(wanted.size());
  EXPECT_EQ(call.OutputShape(0), (std::vector<int64_t>{count, 5}));
  EXPECT_EQ(call.OutputShape(1), std::vector<int64_t>{count});
  const Tensor found = positions.slice(0, 0, count);
  EXPECT_TRUE(at::equal(found, at::tensor(wanted, at::kInt))) << found << at::tensor(wanted);
  EXPECT_TRUE(at::equal(selected.slice(0, 0, count), boxes.index_select(0, found)));
  EXPECT_TRUE(at::all(positions.slice(0, count).eq(77)).item<bool>());
}

// Boxes that lie near each other.
Tensor NearBoxes(int64_t count) {
  return at::cat(
      {at::rand({count, 2}) * 40, at::rand({count, 2}) * 30 + 1, at::rand({count, 1}) * 360 - 180},
      1);
}

TEST(RotatedBoxesByName, BoxesThatOverlapABetterOneTooFarGo) {
  at::manual_seed(11);
  for (float threshold : {0.0f, 0.2f, 0.5f, 0.9f}) {
    ExpectLeft(NearBoxes(40), at::rand({40}), {threshold});
  }
  const Tensor boxes = NearBoxes(30), scores = at::rand({30}) - 0.5;
  ExpectLeft(boxes, scores, {0.3f, 0.125f});
  ExpectLeft(boxes, scores, {0.3f, 0.125f, 3});
  ExpectLeft(boxes, scores, {0.3f, -1, 0});
  ExpectLeft(boxes, scores, {0.3f, 10});
  ExpectLeft(boxes, at::zeros({30}), {0.3f});  // equal scores: the first comes first
  // Sizes of both signs: a box without an area overlaps none.
  ExpectLeft(at::rand({25, 5}) * 200 - 100, at::rand({25}), {0.1f});
  ExpectLeft(NearBoxes(1), at::ones({1}), {});
}

// Boxes whose sides lie on each other: halves, quarters and copies of a box.
TEST(RotatedBoxesByName, SidesOnTheSameLineCountOnce) {
  for (double angle : {0.0, 30.0, 45.0, 90.0, -135.0, 720.0}) {
    const double radians = angle * std::acos(-1.0) / 180;
    Tensor boxes = at::zeros({5, 5});
    const double sizes[5][4] = {
        {0, 0, 8, 4}, {-2, 0, 4, 4}, {-2, -1, 4, 2}, {8, 0, 8, 4}, {0, 0, 8, 4}};
    for (int i = 0; i < 5; ++i) {
      const double x = sizes[i][0], y = sizes[i][1];
      boxes[i][0] = 100 + x * std::cos(radians) - y * std::sin(radians);
      boxes[i][1] = 50 + x * std::sin(radians) + y * std::cos(radians);
      boxes[i][2] = sizes[i][2];
      boxes[i][3] = sizes[i][3];
      boxes[i][4] = angle;
    }
    const Tensor scores = at::tensor({0.9f, 0.8f, 0.7f, 0.6f, 0.5f});
    // The overlaps with the first are 1/2, 1/4, 0 and 1; that of the second and third is 1/2.
    const struct {
      float threshold;
      std::vector<int> left;
    } kCases[] = {{0.01f, {0, 3}},         {0.24f, {0, 3}},       {0.26f, {0, 2, 3}},
                  {0.49f, {0, 2, 3}},      {0.51f, {0, 1, 2, 3}}, {0.99f, {0, 1, 2, 3}},
                  {1.01f, {0, 1, 2, 3, 4}}};
    for (const auto& each : kCases) {
      const Tensor selected = at::zeros({5, 5}), positions = at::zeros({5}, at::kInt);
      NamedCall call("RotatedNMS");
      call.In(boxes).In(scores).In(at::zeros({1}, at::kLong)).Out(selected).Out(positions);
      ASSERT_EQ(call.Set("iou_threshold", each.threshold).Run(), ACL_SUCCESS) << TakeMessage();
      const int64_t count = call.OutputShape(1)[0];
      EXPECT_TRUE(at::equal(positions.slice(0, 0, count), at::tensor(each.left, at::kInt)))
          << angle << each.threshold << positions.slice(0, 0, count);
    }
  }
}

aclError RunPairs(const char* name, const Tensor& a, const Tensor& b, const Tensor& out,
                  bool corners) {
  NamedCall call(name);
  return call.In(a).In(b).Out(out).Set("trans", corners).Run();
}

// Boxes [b, 5, n], from their rows.
Tensor Columns(const Tensor& rows) { return rows.transpose(-1, -2).contiguous(); }

TEST(RotatedBoxesByName, AreasAndOverlapsOfAllPairs) {
  at::manual_seed(12);
  const Tensor a = at::stack({NearBoxes(6), NearBoxes(6)}),
               b = at::stack({NearBoxes(4), NearBoxes(4)});
  a[0][5].copy_(b[0][3]);
  a[1][2][3] = 0;   // without an area
  a[1][3][2] = -5;  // without a width
  b[1][0][4] = a[1][0][4];
  b[1][0][0] = a[1][0][0];
  b[1][0][1] = a[1][0][1];
  b[1][0][3] = a[1][0][3];
  Tensor areas = at::zeros({2, 6, 4}, at::kDouble), overlaps = at::zeros({2, 6, 4}, at::kDouble);
  for (int64_t n = 0; n < 2 * 6 * 4; ++n) {
    const Tensor first = a[n / 24][n / 4 % 6], second = b[n / 24][n % 4];
    const bool some = first[2].item<float>() > 0 && first[3].item<float>() > 0;
    if (!some) continue;
    areas[n / 24][n / 4 % 6][n % 4] = SharedByFormula(first, second);
    overlaps[n / 24][n / 4 % 6][n % 4] = OverlapByFormula(first, second);
  }
  EXPECT_GT(areas.count_nonzero().item<int64_t>(), 15);
  const auto cornered = [](const Tensor& boxes) {
    const Tensor half = boxes.slice(2, 2, 4) / 2, centre = boxes.slice(2, 0, 2);
    return at::cat({centre - half, centre + half, boxes.slice(2, 4)}, 2);
  };
  for (bool corners : {false, true}) {
    const Tensor first = Columns(corners ? cornered(a) : a);
    const Tensor second = Columns(corners ? cornered(b) : b);
    const Tensor out = at::full({2, 6, 4}, 77.0f);
    ASSERT_EQ(RunPairs("RotatedOverlaps", first, second, out, corners), ACL_SUCCESS)
        << TakeMessage();
    EXPECT_TRUE(at::allclose(out.to(at::kDouble), areas, 1e-4, 1e-3)) << out << areas;
    ASSERT_EQ(RunPairs("RotatedIou", first, second, out, corners), ACL_SUCCESS) << TakeMessage();
    EXPECT_TRUE(at::allclose(out.to(at::kDouble), overlaps, 1e-4, 1e-5)) << out << overlaps;
  }
}

// Numbers that the vendor's tests of these operators expect.
TEST(RotatedBoxesByName, TheExamplesOfTheVendor) {
  const Tensor anchor = at::tensor({44.2877f, 9.1412f, 88.7575f, 25.8879f, 64.8047f});
  const Tensor truth = at::tensor({39.1763f, 0.9838f, 78.1028f, 29.5997f, 51.5907f});
  const Tensor out = at::full({1, 5, 1}, 77.0f);
  const std::vector<float> ones(5, 1.0f);
  NamedCall encode("RotatedBoxEncode");
  encode.In(anchor.view({1, 5, 1})).In(truth.view({1, 5, 1})).Out(out).Set("weight", ones);
  ASSERT_EQ(encode.Run(), ACL_SUCCESS) << TakeMessage();
  EXPECT_TRUE(at::allclose(out.view({5}),
                           at::tensor({-0.1773f, -0.1327f, -0.1331f, 0.5358f, -0.8643f}), 0, 1e-4))
      << out;
  const Tensor from = at::tensor({32.1855f, 41.9922f, 64.1435f, 62.5325f, 34.607f});
  const Tensor deltas = at::tensor({1.8725f, -1.8915f, 0.2395f, -0.4622f, -34.6539f});
  NamedCall decode("RotatedBoxDecode");
  decode.In(from.view({1, 5, 1})).In(deltas.view({1, 5, 1})).Out(out).Set("weight", ones);
  ASSERT_EQ(decode.Run(), ACL_SUCCESS) << TakeMessage();
  EXPECT_TRUE(at::allclose(out.view({5}),
                           at::tensor({87.70366f, 6.9412346f, 128.31055f, 19.879467f, -88.313515f}),
                           1e-4, 1e-4))
      << out;
}

TEST(RotatedBoxesByName, BoxesAreFoundAgainFromTheirPlaces) {
  at::manual_seed(13);
  for (at::ScalarType type : {at::kFloat, at::kHalf}) {
    const auto boxes = [&] {
      const Tensor first = at::rand({2, 2, 7}) * 20, size = at::rand({2, 2, 7}) * 9 + 1;
      return at::cat({first, first + size, at::rand({2, 1, 7}) * 120 - 60}, 1).to(type);
    };
    const Tensor anchors = boxes(), truths = boxes();
    const Tensor places = at::full({2, 5, 7}, 77, type), found = at::full({2, 5, 7}, 77, type);
    NamedCall encode("RotatedBoxEncode"), decode("RotatedBoxDecode");
    encode.In(anchors).In(truths).Out(places);
    ASSERT_EQ(encode.Run(), ACL_SUCCESS) << TakeMessage();
    decode.In(anchors).In(places).Out(found);
    ASSERT_EQ(decode.Run(), ACL_SUCCESS) << TakeMessage();
    const double tolerance = type == at::kHalf ? 5e-2 : 1e-4;
    EXPECT_TRUE(at::allclose(found.to(at::kDouble), truths.to(at::kDouble), tolerance, tolerance));
  }
}

TEST(RotatedBoxesByName, FormsOfPairsThatAreRefused) {
  const Tensor a = at::zeros({2, 5, 3}), b = at::zeros({2, 5, 4}), out = at::zeros({2, 3, 4});
  const auto said = [](NamedCall& call) {
    TakeMessage();
    EXPECT_NE(call.Run(), ACL_SUCCESS);
    return TakeMessage();
  };
  const auto of_pairs = [&](const Tensor& first, const Tensor& result, const char* name,
                            const char* value) {
    NamedCall call("RotatedIou");
    call.In(first).In(b).Out(result).Set(name, value);
    return said(call);
  };
  EXPECT_NE(of_pairs(a, out, "mode", "iof").find("the mode is \"iof\""), std::string::npos);
  EXPECT_NE(of_pairs(a, out, "is_cross", "false").find("is_cross false"), std::string::npos);
  EXPECT_NE(of_pairs(a, out, "v_threshold", "0.5").find("thresholds of 0"), std::string::npos);
  EXPECT_NE(of_pairs(a, at::zeros({2, 3, 5}), "mode", "iou").find("output 0 has the shape"),
            std::string::npos);
  EXPECT_NE(of_pairs(at::zeros({1, 5, 3}), out, "mode", "iou").find("input 1 has the shape"),
            std::string::npos);
  EXPECT_NE(of_pairs(a.to(at::kHalf), out, "mode", "iou").find("of one type, float32"),
            std::string::npos);
  NamedCall many("RotatedIou");
  many.In(at::zeros({1, 5, 1})).In(at::zeros({1, 5, 1601})).Out(at::zeros({1, 1, 1601}));
  EXPECT_NE(said(many).find("1600 query boxes at most"), std::string::npos);
  NamedCall weighted("RotatedBoxEncode");
  weighted.In(a).In(a).Out(at::zeros({2, 5, 3}));
  weighted.Set("weight", std::vector<float>{1, 1, 1, 1, 2});
  EXPECT_NE(said(weighted).find("and weights of 1"), std::string::npos);
  NamedCall uneven("RotatedBoxDecode");
  uneven.In(a).In(b).Out(at::zeros({2, 5, 3}));
  EXPECT_NE(said(uneven).find("[2, 5, 3] and [2, 5, 4]"), std::string::npos);
}

TEST(RotatedBoxesByName, NoBoxesAndFormsThatAreRefused) {
  ExpectLeft(at::zeros({0, 5}), at::zeros({0}), {});
  const Tensor boxes = at::zeros({3, 5}), scores = at::zeros({3});
  const Tensor label = at::zeros({}, at::kInt);
  const auto said = [&](const Tensor& of_boxes, const Tensor& labels, const char* attribute,
                        int64_t value, bool older) {
    const Tensor selected = at::zeros({3, 5}), positions = at::zeros({3}, at::kInt);
    NamedCall call("RotatedNMS");
    call.In(of_boxes).In(scores).In(labels).Out(selected).Out(positions);
    call.Set("iou_threshold", 0.5f).Set(attribute, value);
    TakeMessage();
    EXPECT_NE(older ? call.RunOlder() : call.Run(), ACL_SUCCESS);
    return TakeMessage();
  };
  EXPECT_NE(said(boxes, label, "mode", 1, false).find("mode is 1 and is_angle true"),
            std::string::npos);
  EXPECT_NE(said(boxes, label, "max_output_size", -2, false).find("max_output_size is -2"),
            std::string::npos);
  EXPECT_NE(said(boxes, label, "mode", 0, true).find("by aclopCompileAndExecuteV2 alone"),
            std::string::npos);
  EXPECT_NE(
      said(boxes, at::zeros({3}, at::kInt), "mode", 0, false).find("labels have the shape [3"),
      std::string::npos);
  EXPECT_NE(said(boxes.to(at::kHalf), label, "mode", 0, false).find("and the type 1"),
            std::string::npos);
  EXPECT_NE(said(at::zeros({3, 4}), label, "mode", 0, false).find("boxes have the shape [3, 4]"),
            std::string::npos);
}

}  // namespace
}  // namespace acltape::opapi
