// Boxes of several classes in several images: in each class those that no better box of the class
// overlaps too far, and in each image the best of all classes (BatchMultiClassNonMaxSuppression).
// The rules are those of the vendor's page and of its reference for tests.
#include <cmath>
#include <limits>

#include "runtime/device/by_name/arguments.h"
#include "runtime/device/by_name/suppression.h"

namespace acltape::device {
namespace {

using Value = NamedArithmetic::Value;

constexpr int kWindow = 2, kValidBoxes = 3;  // the optional inputs

struct ClassSuppression {
  int64_t images, boxes, classes, box_classes;  // box_classes: 1 where all classes share the boxes
  int64_t each, total;                          // boxes of a class, and of an image, at most
  double least_score, overlap;
  bool turned;     // boxes have the shape [images, classes, 4, boxes]
  bool to_window;  // the results lie in parts of the window
  bool has_window, has_count;

  int64_t rows() const { return images * classes; }
  int64_t picks() const { return std::min(each, boxes); }
};

aclError CheckClassTensors(const NamedCall& call, const ClassSuppression& with) {
  const aclDataType type = call.inputs.descs[0]->type;
  const auto same = [&](aclDataType of) { return of == type; };
  const bool window = !with.has_window || (same(call.inputs.descs[kWindow]->type) &&
                                           call.inputs.Shape(kWindow) ==
                                               std::vector<int64_t>{with.images, kBoxNumbers});
  const bool count =
      !with.has_count || (call.inputs.descs[kValidBoxes]->type == ACL_INT32 &&
                          call.inputs.Shape(kValidBoxes) == std::vector<int64_t>{with.images});
  bool outputs = call.outputs.descs[3]->type == ACL_INT32;
  for (int i = 0; i < 3; ++i) outputs = outputs && same(call.outputs.descs[i]->type);
  if ((type == ACL_FLOAT || type == ACL_FLOAT16) && same(call.inputs.descs[1]->type) && window &&
      count && outputs && !call.inputs.InBlocks(0) && !call.inputs.InBlocks(1)) {
    ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, {with.images, with.total, kBoxNumbers}));
    for (int i : {1, 2}) {
      ACLTAPE_RETURN_IF_FAILED(CheckShape(call, i, {with.images, with.total}));
    }
    return CheckShape(call, 3, {with.images});
  }
  return Fail(ACL_ERROR_INVALID_PARAM,
              "aclop %s: expected boxes, scores, clip_window [b, 4] and the first three outputs in "
              "one type, float32 or float16, and num_valid_boxes [b] and the last output in int32; "
              "boxes have the type %d and scores %d",
              call.name, static_cast<int>(type), static_cast<int>(call.inputs.descs[1]->type));
}

aclError ReadClassSuppression(const NamedCall& call, ClassSuppression* with) {
  constexpr int64_t kMostPicks = 1000;
  const std::vector<int64_t>& boxes = call.inputs.Shape(0);
  const std::vector<int64_t>& scores = call.inputs.Shape(1);
  with->turned = FlagOf(call, "transpose_box", false);
  with->to_window = FlagOf(call, "change_coordinate_frame", false);
  with->has_window = call.inputs.Has(kWindow);
  with->has_count = call.inputs.Has(kValidBoxes);
  if (with->has_window) ACLTAPE_RETURN_IF_FAILED(CheckInput(call, kWindow, "clip_window"));
  if (with->has_count) ACLTAPE_RETURN_IF_FAILED(CheckInput(call, kValidBoxes, "num_valid_boxes"));
  const size_t numbers_dim = with->turned ? 2 : 3, boxes_dim = with->turned ? 3 : 1;
  const size_t classes_dim = with->turned ? 1 : 2;
  if (boxes.size() != 4 || scores.size() != 3 || boxes[numbers_dim] != kBoxNumbers ||
      boxes[0] != scores[0] || boxes[boxes_dim] != scores[1] || ElementsOf(scores) == 0 ||
      (boxes[classes_dim] != 1 && boxes[classes_dim] != scores[2])) {
    return Fail(ACL_ERROR_INVALID_PARAM,
                "aclop %s: boxes have the shape %s and scores %s; expected %s, with q 1 or c, and "
                "[b, n, c], without a dim of 0",
                call.name, ShapeText(boxes).c_str(), ShapeText(scores).c_str(),
                with->turned ? "[b, q, 4, n]" : "[b, n, q, 4]");
  }
  with->images = scores[0];
  with->boxes = scores[1];
  with->classes = scores[2];
  with->box_classes = boxes[classes_dim];
  with->each = IntegerOf(call, "max_size_per_class", 0);
  with->total = IntegerOf(call, "max_total_size", 0);
  with->least_score = RealOf(call, "score_threshold", NAN);
  with->overlap = RealOf(call, "iou_threshold", NAN);
  const auto fits = [](int64_t number) { return number >= 1 && number <= kMostPicks; };
  if (!fits(with->each) || !fits(with->total) || !std::isfinite(with->least_score) ||
      !(with->overlap >= 0 && with->overlap <= 1) || (with->to_window && !with->has_window)) {
    return Fail(ACL_ERROR_INVALID_PARAM,
                "aclop %s: max_size_per_class is %lld, max_total_size %lld, score_threshold %g, "
                "iou_threshold %g and change_coordinate_frame %s; expected numbers from 1 to 1000, "
                "a finite one, one from 0 to 1, and a clip_window where the frame changes",
                call.name, static_cast<long long>(with->each), static_cast<long long>(with->total),
                with->least_score, with->overlap, with->to_window ? "true" : "false");
  }
  if (with->boxes > kMostPositions / with->rows()) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                "aclop %s: %lld boxes in %lld classes of all images are more than %lld, which the "
                "soft device takes",
                call.name, static_cast<long long>(with->boxes),
                static_cast<long long>(with->rows()), static_cast<long long>(kMostPositions));
  }
  return CheckClassTensors(call, *with);
}

// One of the numbers y0, x0, y1 and x1 of each box of each class, cut at the window. [images,
// classes, boxes].
Value ClassCoordinate(NamedArithmetic& in, const ClassSuppression& with, int64_t number) {
  const int64_t n = with.boxes, q = with.box_classes;
  const int64_t step = with.turned ? 1 : q * kBoxNumbers;
  const int64_t of_class = q == 1 ? 0 : with.turned ? kBoxNumbers * n : kBoxNumbers;
  Value given = in.Copied(0, {with.images, with.classes, n}, {n * q * kBoxNumbers, of_class, step},
                          with.turned ? number * n : number);
  if (!with.has_window) return given;
  const auto border = [&](int64_t i) {
    return in.Read(kWindow, {with.images, 1, 1}, {kBoxNumbers, 1, 1}, i);
  };
  Value cut = number < 2 ? in.Greater(given, border(number)) : in.Less(given, border(number));
  if (!with.to_window) return cut;
  const Value first = border(number % 2);
  return in.Divide(in.Subtract(cut, first), in.Subtract(border(number % 2 + 2), first));
}

// 1 for each box that may be a result, else 0. [images, classes, boxes].
Value EligibleBoxes(NamedArithmetic& in, const ClassSuppression& with, const Boxes& boxes,
                    const Value& scores) {
  const Value has_area = in.Multiply(in.Positive(Width(in, boxes)), in.Positive(Height(in, boxes)));
  Value eligible = in.Multiply(has_area, in.Positive(in.Plus(scores, -with.least_score)));
  if (with.has_count) {
    const Value count = in.Read(kValidBoxes, {with.images, 1, 1}, {1, 1, 1});
    eligible =
        in.Multiply(eligible, in.Positive(in.Subtract(count, in.Counting({1, 1, with.boxes}))));
  }
  if (with.to_window) {
    const auto length = [&](int64_t i) {
      const auto border = [&](int64_t number) {
        return in.Read(kWindow, {with.images, 1, 1}, {kBoxNumbers, 1, 1}, number);
      };
      return in.Positive(in.Subtract(border(i + 2), border(i)));
    };
    eligible = in.Multiply(eligible, in.Multiply(length(0), length(1)));
  }
  return eligible;
}

// A result has seven numbers: y0, x0, y1, x1, the score, the class, and 1, or seven zeros.
constexpr int64_t kResultNumbers = 7;
constexpr int64_t kScoreNumber = 4, kClassNumber = 5, kFoundNumber = 6;

// The results of all classes of an image, from the highest score on; of equal ones that of the
// first class. [images * count, kResultNumbers], with `count` results of each image.
Value BestResults(NamedArithmetic& in, const ClassSuppression& with, const PickedBoxes& picked,
                  const Value& scores, int64_t count) {
  const int64_t rows = with.rows(), most = with.picks(), of_image = with.classes * most;
  const Value none = in.Filled({1, 1}, 0);
  const auto where_found = [&](const Value& value) { return in.Where(picked.found, value, none); };
  const Value score = where_found(in.FromEach(scores, in.Indices(picked.position)));
  const Value table = in.Space({rows * most, kResultNumbers});
  const auto column = [&](int64_t i) {
    return in.Part(table, {rows, most}, {most * kResultNumbers, kResultNumbers}, i);
  };
  constexpr int64_t kPlaces[] = {1, 0, 3, 2};  // y0, x0, y1, x1 in a picked box
  for (int64_t i = 0; i < kBoxNumbers; ++i) {
    in.Set(column(i), where_found(in.Part(picked.boxes, {rows, most},
                                          {most * kPickedNumbers, kPickedNumbers}, kPlaces[i])));
  }
  const Value classes = in.Add(in.Filled({with.images, 1}, 0), in.Counting({1, with.classes}));
  in.Set(column(kScoreNumber), score);
  in.Set(column(kClassNumber), where_found(in.As(classes, {rows, 1})));
  in.Set(column(kFoundNumber), picked.found);
  const Value lowest = in.Filled({1, 1}, -std::numeric_limits<float>::infinity());
  const Value order = in.Numbers(
      in.Descending(in.As(in.Where(picked.found, score, lowest), {with.images, of_image})));
  const Value begins = in.Times(in.Counting({with.images, 1}), static_cast<double>(of_image));
  const Value best = in.Add(in.Part(order, {with.images, count}, {of_image, 1}), begins);
  return in.Rows(table, in.Indices(in.As(best, {with.images * count})));
}

}  // namespace

aclError SuppressByClass(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, 2, 4));
  ClassSuppression with{};
  ACLTAPE_RETURN_IF_FAILED(ReadClassSuppression(call, &with));
  const int64_t n = with.boxes, total = with.total;
  const int64_t count = std::min(total, with.classes * with.picks());
  const std::vector<int64_t> shape{with.rows(), n};
  NamedArithmetic in(call);
  const auto number = [&](int64_t i) { return ClassCoordinate(in, with, i); };
  const Boxes given{number(1), number(0), number(3), number(2)};
  const Value scores =
      in.Copied(1, {with.images, with.classes, n}, {n * with.classes, 1, with.classes});
  const Value eligible = EligibleBoxes(in, with, given, scores);
  const Boxes boxes{in.As(given.x0, shape), in.As(given.y0, shape), in.As(given.x1, shape),
                    in.As(given.y1, shape)};
  const Value of_rows = in.As(scores, shape);
  const PickedBoxes picked = PickBoxes(in, boxes, in.As(eligible, shape), of_rows,
                                       in.Filled({1, 1}, with.overlap), with.picks());
  const Value best = BestResults(in, with, picked, of_rows, count);
  const auto part = [&](int64_t first, int64_t numbers) {
    return in.Part(best, {with.images, count, numbers}, {count * kResultNumbers, kResultNumbers, 1},
                   first);
  };
  in.Write(in.Filled({with.images, total, kBoxNumbers}, 0), 0,
           {total * kBoxNumbers, kBoxNumbers, 1});
  in.Write(part(0, kBoxNumbers), 0, {total * kBoxNumbers, kBoxNumbers, 1});
  for (int i : {1, 2}) {
    in.Write(in.Filled({with.images, total}, 0), i, {total, 1});
    in.Write(part(i == 1 ? kScoreNumber : kClassNumber, 1), i, {total, 1, 1});
  }
  in.Write(in.Sum(part(kFoundNumber, 1), {1, 2}), 3, {1});
  ACLTAPE_RETURN_IF_FAILED(in.status());
  return ClearPadding(call);
}

}  // namespace acltape::device
