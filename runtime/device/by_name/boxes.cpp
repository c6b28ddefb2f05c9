// Operators by name over boxes of objects in images: how far boxes overlap, and where one box lies
// beside another.
#include <cmath>
#include <numbers>

#include "aclnnop/aclnn_scatter.h"
#include "aclnnop/aclnn_zero.h"
#include "runtime/device/by_name/arguments.h"
#include "runtime/device/by_name/box_geometry.h"
#include "runtime/device/by_name/table.h"

namespace acltape::device {
namespace {

using Arithmetic = NamedArithmetic;
using Value = Arithmetic::Value;

// Boxes of shape [n, 4], as columns of this shape.
Boxes ReadRows(Arithmetic& in, int input, const std::vector<int64_t>& shape) {
  const auto column = [&](int64_t i) {
    return in.Read(input, shape, std::vector<int64_t>(shape.size(), kBoxNumbers), i);
  };
  return {column(0), column(1), column(2), column(3)};
}

// The intersection is divided by this: the union, or the area of the second boxes ("iof").
Value Reference(Arithmetic& in, const NamedCall& call, const Value& a, const Value& b,
                const Value& intersection) {
  return call.Text("mode") == "iof" ? b : in.Subtract(in.Add(a, b), intersection);
}

// (bboxes [n, 4], gtboxes [m, 4]) to [m, n]. An eps of 1 or more stands for whole pixels: the box
// (0, 0, 0, 0) has the area 1. A smaller one is added to the sizes of boxes, so that none is 0.
aclError OverlapOfAll(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, 2, 1));
  ACLTAPE_RETURN_IF_FAILED(CheckBoxes(call, 0, 2, 1));
  ACLTAPE_RETURN_IF_FAILED(CheckOverlapMode(call));
  if (FlagOf(call, "aligned", false)) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                "aclop %s: the soft device compares all boxes with all others (aligned = false)",
                call.name);
  }
  const int64_t n = call.inputs.Shape(0)[0], m = call.inputs.Shape(1)[0];
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, {m, n}));
  const double eps = RealOf(call, "eps", 1);
  const bool pixels = eps >= 1;
  Arithmetic in(call);
  const Boxes boxes = ReadRows(in, 0, {1, n}), truths = ReadRows(in, 1, {m, 1});
  const auto area = [&](const Boxes& of) {
    return in.Multiply(in.Plus(Width(in, of), pixels ? 1 : eps),
                       in.Plus(Height(in, of), pixels ? 1 : eps));
  };
  const Boxes inner = Intersection(in, boxes, truths);
  const double border = pixels ? 1 : 0;
  const Value intersection = in.Multiply(in.AtLeast(in.Plus(Width(in, inner), border), 0),
                                         in.AtLeast(in.Plus(Height(in, inner), border), 0));
  const Value overlap =
      in.Divide(intersection, Reference(in, call, area(boxes), area(truths), intersection));
  // With "iof" the divisor has one column, which the quotient repeats.
  in.Write(overlap, 0, {n, 1});
  return in.status();
}

// Pairs of boxes of shape [4, n], to `outputs` rows of numbers.
aclError CheckOverlaps(const NamedCall& call, int outputs) {
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, 2, outputs));
  ACLTAPE_RETURN_IF_FAILED(CheckPairsOfBoxes(call, 0));
  for (int i = 0; i < outputs; ++i) {
    ACLTAPE_RETURN_IF_FAILED(CheckShape(call, i, {1, call.inputs.Shape(0)[1]}));
  }
  return ACL_SUCCESS;
}

Value AreaOfIntersection(Arithmetic& in, const Boxes& a, const Boxes& b) {
  const Boxes inner = Intersection(in, a, b);
  return in.Multiply(in.AtLeast(Width(in, inner), 0), in.AtLeast(Height(in, inner), 0));
}

// The overlap, less the part of the enclosing box that neither box covers.
aclError GeneralOverlap(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckOverlaps(call, 1));
  Arithmetic in(call);
  const Boxes a = ReadCorners(in, call, 0), b = ReadCorners(in, call, 1);
  const Value intersection = AreaOfIntersection(in, a, b);
  const Value reference = Reference(in, call, AreaOf(in, a), AreaOf(in, b), intersection);
  const Value outer = AreaOf(in, Enclosure(in, a, b));
  in.Write(in.Subtract(in.Divide(intersection, reference),
                       in.Divide(in.Subtract(outer, reference), outer)),
           0, {1, 1});
  return in.status();
}

// The square of the distance between the centres, in parts of that of the enclosing box's corners.
Value Distance(Arithmetic& in, const Boxes& a, const Boxes& b) {
  const auto square = [&](const Value& value) { return in.Multiply(value, value); };
  const Boxes outer = Enclosure(in, a, b);
  const Value corners =
      in.Plus(in.Add(square(Width(in, outer)), square(Height(in, outer))), kLeastDivisor);
  const Value x = in.Subtract(in.Add(a.x0, a.x1), in.Add(b.x0, b.x1));
  const Value y = in.Subtract(in.Add(a.y0, a.y1), in.Add(b.y0, b.y1));
  return in.Divide(in.Times(in.Add(square(x), square(y)), 0.25), corners);
}

aclError DistanceOverlap(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckOverlaps(call, 1));
  Arithmetic in(call);
  const Boxes a = ReadCorners(in, call, 0), b = ReadCorners(in, call, 1);
  const Value intersection = AreaOfIntersection(in, a, b);
  const Value reference = Reference(in, call, AreaOf(in, a), AreaOf(in, b), intersection);
  in.Write(in.Subtract(in.Divide(intersection, reference), Distance(in, a, b)), 0, {1, 1});
  return in.status();
}

// As above, less a penalty for another ratio of width and height. The second output is the
// difference of the angles of both ratios, for the gradient.
aclError CompleteOverlap(const NamedCall& call) {
  constexpr double kLeastHeight = 1e-9, kGreatestRatio = 10000;
  ACLTAPE_RETURN_IF_FAILED(CheckOverlaps(call, 2));
  Arithmetic in(call);
  const Boxes a = ReadCorners(in, call, 0), b = ReadCorners(in, call, 1);
  const auto height = [&](const Boxes& of) { return in.Plus(Height(in, of), kLeastHeight); };
  const auto area = [&](const Boxes& of) {
    return in.Multiply(in.Plus(Width(in, of), kLeastDivisor), in.Plus(height(of), kLeastDivisor));
  };
  const auto angle = [&](const Boxes& of) {
    return in.Atan(in.AtMost(in.Divide(Width(in, of), height(of)), kGreatestRatio));
  };
  const Boxes inner = Intersection(in, a, b);
  const Value intersection =
      in.Multiply(in.AtLeast(Width(in, inner), 0), in.AtLeast(height(inner), 0));
  const Value overlap =
      in.Divide(intersection, Reference(in, call, area(a), area(b), intersection));
  const Value angles = in.Subtract(angle(b), angle(a));
  const Value v = in.Times(in.Multiply(angles, angles), 4 / (std::numbers::pi * std::numbers::pi));
  const Value alpha = in.Divide(v, in.Plus(in.Subtract(v, overlap), 1));
  in.Write(in.Subtract(in.Subtract(overlap, Distance(in, a, b)), in.Multiply(alpha, v)), 0, {1, 1});
  in.Write(angles, 1, {1, 1});
  return in.status();
}

// Four numbers of an attribute.
aclError ReadFour(const NamedCall& call, const char* attribute, double otherwise,
                  std::vector<double>* numbers) {
  *numbers = RealsOf(call, attribute);
  if (numbers->empty()) numbers->assign(kBoxNumbers, otherwise);
  if (numbers->size() == kBoxNumbers) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, "aclop %s: %s has %zu numbers, expected 4", call.name,
              attribute, numbers->size());
}

// The centres and sizes of boxes.
struct Places {
  Value x, y, width, height;
};

// `border` is 1 for boxes of whole pixels, of which (0, 0, 0, 0) has the size 1.
Places PlacesOf(Arithmetic& in, const Boxes& boxes, double border) {
  return {in.Times(in.Add(boxes.x0, boxes.x1), 0.5), in.Times(in.Add(boxes.y0, boxes.y1), 0.5),
          in.Plus(Width(in, boxes), border), in.Plus(Height(in, boxes), border)};
}

// Checks two inputs of boxes [n, 4] and an output of the same shape.
aclError CheckBesideEachOther(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, 2, 1));
  ACLTAPE_RETURN_IF_FAILED(CheckBoxes(call, 0, 2, 1));
  if (call.inputs.Shape(0) != call.inputs.Shape(1)) {
    return Fail(ACL_ERROR_INVALID_PARAM, "aclop %s: its inputs have the shapes %s and %s",
                call.name, ShapeText(call.inputs.Shape(0)).c_str(),
                ShapeText(call.inputs.Shape(1)).c_str());
  }
  return CheckShape(call, 0, call.inputs.Shape(0));
}

// Where a true box lies beside an anchor, in parts of the anchor's size, and less `means` over
// `stds`. The sizes are logarithms.
aclError EncodeBoxes(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckBesideEachOther(call));
  std::vector<double> means, stds;
  ACLTAPE_RETURN_IF_FAILED(ReadFour(call, "means", 0, &means));
  ACLTAPE_RETURN_IF_FAILED(ReadFour(call, "stds", 1, &stds));
  const std::vector<int64_t> column{call.inputs.Shape(0)[0]};
  Arithmetic in(call);
  const Places anchor = PlacesOf(in, ReadRows(in, 0, column), 1);
  const Places truth = PlacesOf(in, ReadRows(in, 1, column), 1);
  const auto ratio = [&](const Value& of, const Value& to) {
    return in.Log(in.Divide(in.Abs(of), in.Abs(to)));
  };
  const Value deltas[] = {in.Divide(in.Subtract(truth.x, anchor.x), anchor.width),
                          in.Divide(in.Subtract(truth.y, anchor.y), anchor.height),
                          ratio(truth.width, anchor.width), ratio(truth.height, anchor.height)};
  for (int i = 0; i < kBoxNumbers; ++i) {
    in.Write(in.Over(in.Plus(deltas[i], -means[i]), stds[i]), 0, {kBoxNumbers}, i);
  }
  return in.status();
}

// The reverse: boxes of which EncodeBoxes would give these deltas, inside of an image.
aclError DecodeBoxes(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckBesideEachOther(call));
  std::vector<double> means, stds;
  ACLTAPE_RETURN_IF_FAILED(ReadFour(call, "means", 0, &means));
  ACLTAPE_RETURN_IF_FAILED(ReadFour(call, "stds", 1, &stds));
  const std::vector<int64_t> limits = IntegersOf(call, "max_shape");
  const double clip = RealOf(call, "wh_ratio_clip", 0.016);
  if (limits.size() != 2 || !(clip > 0)) {
    return Fail(ACL_ERROR_INVALID_PARAM,
                "aclop %s: max_shape has %zu numbers and wh_ratio_clip is %g; expected the height "
                "and width of an image, and a positive number",
                call.name, limits.size(), clip);
  }
  const double most = std::abs(std::log(clip));
  const std::vector<int64_t> column{call.inputs.Shape(0)[0]};
  Arithmetic in(call);
  const Places anchor = PlacesOf(in, ReadRows(in, 0, column), 1);
  const Boxes given = ReadRows(in, 1, column);
  const auto scaled = [&](const Value& delta, int i) {
    return in.Plus(in.Times(delta, stds[i]), means[i]);
  };
  const auto size = [&](const Value& delta, int i, const Value& of) {
    return in.Multiply(of, in.Exp(in.AtMost(in.AtLeast(scaled(delta, i), -most), most)));
  };
  const Value x = in.Add(anchor.x, in.Multiply(anchor.width, scaled(given.x0, 0)));
  const Value y = in.Add(anchor.y, in.Multiply(anchor.height, scaled(given.y0, 1)));
  const Value half_width = in.Times(size(given.x1, 2, anchor.width), 0.5);
  const Value half_height = in.Times(size(given.y1, 3, anchor.height), 0.5);
  const Value corners[] = {
      in.Plus(in.Subtract(x, half_width), 0.5), in.Plus(in.Subtract(y, half_height), 0.5),
      in.Plus(in.Add(x, half_width), -0.5), in.Plus(in.Add(y, half_height), -0.5)};
  for (int i = 0; i < kBoxNumbers; ++i) {
    const auto last = static_cast<double>(limits[i % 2 == 0 ? 1 : 0] - 1);
    in.Write(in.AtMost(in.AtLeast(corners[i], 0), last), 0, {kBoxNumbers}, i);
  }
  return in.status();
}

// (anchors, true boxes, strides): the centre of a true box within the cell of its anchor, between 0
// and 1, and the logarithm of the ratio of the sizes.
aclError EncodeYoloBoxes(const NamedCall& call) {
  constexpr double kLeast = 1e-6;
  ACLTAPE_RETURN_IF_FAILED(CheckBesideEachOther(call));
  ACLTAPE_RETURN_IF_FAILED(CheckCounts(call, 3, 1));
  ACLTAPE_RETURN_IF_FAILED(CheckInput(call, 2, "stride"));
  const std::vector<int64_t> column{call.inputs.Shape(0)[0]};
  if (call.inputs.Shape(2) != column || call.inputs.descs[2]->type != ACL_INT32) {
    return Fail(ACL_ERROR_INVALID_PARAM,
                "aclop %s: stride has the shape %s and the type %d, expected %s and int32",
                call.name, ShapeText(call.inputs.Shape(2)).c_str(),
                static_cast<int>(call.inputs.descs[2]->type), ShapeText(column).c_str());
  }
  Arithmetic in(call);
  const Places anchor = PlacesOf(in, ReadRows(in, 0, column), 0);
  const Places truth = PlacesOf(in, ReadRows(in, 1, column), 0);
  const Value stride = in.Read(2, column, {1});
  const auto centre = [&](const Value& of, const Value& from) {
    const Value within = in.Plus(in.Divide(in.Subtract(of, from), stride), 0.5);
    return in.AtMost(in.AtLeast(within, kLeast), 1 - kLeast);
  };
  const auto ratio = [&](const Value& of, const Value& to) {
    return in.Log(in.AtLeast(in.Divide(of, to), kLeast));
  };
  const Value results[] = {centre(truth.x, anchor.x), centre(truth.y, anchor.y),
                           ratio(truth.width, anchor.width), ratio(truth.height, anchor.height)};
  for (int i = 0; i < kBoxNumbers; ++i) in.Write(results[i], 0, {kBoxNumbers}, i);
  return in.status();
}

// 1 for each anchor of the cells of a feature map in which a true box has its centre.
aclError FlagAnchors(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, 1, 1));
  ACLTAPE_RETURN_IF_FAILED(CheckBoxes(call, 0, 1, 1));
  const std::vector<int64_t> map = IntegersOf(call, "featmap_size");
  const std::vector<int64_t> strides = IntegersOf(call, "strides");
  const int64_t anchors = IntegerOf(call, "num_base_anchors", 0);
  // The flags' positions are computed in float32, which has all integers up to this one.
  constexpr int64_t kMostCells = int64_t{1} << 24;
  const auto positive = [](const std::vector<int64_t>& of) {
    return of.size() == 2 && of[0] > 0 && of[1] > 0;
  };
  if (!positive(map) || !positive(strides) || anchors < 1 || map[0] > kMostCells / map[1] ||
      anchors > kMostCells) {
    return Fail(ACL_ERROR_INVALID_PARAM,
                "aclop %s: featmap_size is %s, strides %s and num_base_anchors %lld; expected two "
                "positive numbers, two, and one, and at most %lld cells",
                call.name, ShapeText(map).c_str(), ShapeText(strides).c_str(),
                static_cast<long long>(anchors), static_cast<long long>(kMostCells));
  }
  const int64_t cells = map[0] * map[1], count = call.inputs.Shape(0)[0];
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, {cells * anchors}));
  OperatorArguments own;
  aclTensor* flags = own.Dense(call.outputs, 0, {cells, anchors});
  ACLTAPE_RETURN_IF_FAILED(
      RunOperator<decltype(&aclnnInplaceZeroGetWorkspaceSize)>(call, "aclnnInplaceZero", flags));
  if (count == 0) return ACL_SUCCESS;
  Arithmetic in(call);
  const Boxes boxes = ReadRows(in, 0, {count});
  const auto cell = [&](const Value& first, const Value& last, int64_t stride, int64_t cells_of) {
    const Value at =
        in.Floor(in.Over(in.Times(in.Add(first, last), 0.5), static_cast<double>(stride)));
    return in.AtMost(in.AtLeast(at, 0), static_cast<double>(cells_of - 1));
  };
  const Value column = cell(boxes.x0, boxes.x1, strides[0], map[1]);
  const Value row = cell(boxes.y0, boxes.y1, strides[1], map[0]);
  const Value places = in.Indices(in.Add(in.Times(row, static_cast<double>(map[1])), column));
  ACLTAPE_RETURN_IF_FAILED(in.status());
  // All anchors of a cell get its flag.
  const aclTensor* index =
      own.Tensor(ACL_INT64, places.memory.get(), {count}, {count, anchors}, {1, 0});
  return RunOperator<decltype(&aclnnInplaceScatterValueGetWorkspaceSize)>(
      call, "aclnnInplaceScatterValue", flags, int64_t{0}, index, own.Float(1), int64_t{0});
}

constexpr NamedOperator kBoxes[] = {
    {"Iou", OverlapOfAll},
    {"PtIou", OverlapOfAll},
    {"GIoU", GeneralOverlap},
    {"DIoU", DistanceOverlap},
    {"CIoU", CompleteOverlap},
    {"GIoUGrad", GeneralOverlapGradient},
    {"DIoUGrad", DistanceOverlapGradient},
    {"CIoUGrad", CompleteOverlapGradient},
    {"BoundingBoxEncode", EncodeBoxes},
    {"BoundingBoxDecode", DecodeBoxes},
    {"YoloBoxesEncode", EncodeYoloBoxes},
    {"AnchorResponseFlags", FlagAnchors},
};

}  // namespace

NamedTable BoxesByName() { return kBoxes; }

}  // namespace acltape::device
