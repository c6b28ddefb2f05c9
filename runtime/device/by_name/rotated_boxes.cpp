// Rotated boxes of objects in images (x, y, w, h, angle): how far they overlap, and where one lies
// beside another.
#include <numbers>

#include "runtime/device/by_name/arguments.h"
#include "runtime/device/by_name/rotated_geometry.h"
#include "runtime/device/by_name/table.h"

namespace acltape::device {
namespace {

using Value = NamedArithmetic::Value;

// Boxes of shape [b, 5, n] of two inputs.
aclError CheckRotated(const NamedCall& call, bool halves) {
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, 2, 1));
  const aclDataType type = call.inputs.descs[0]->type;
  for (int i = 0; i < 2; ++i) {
    const std::vector<int64_t>& shape = call.inputs.Shape(i);
    const bool fits = shape.size() == 3 && shape[1] == kRotatedNumbers && !call.inputs.InBlocks(i);
    if (fits && shape[0] == call.inputs.Shape(0)[0] && call.inputs.descs[i]->type == type &&
        (type == ACL_FLOAT || (halves && type == ACL_FLOAT16))) {
      continue;
    }
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                "aclop %s: input %d has the shape %s and the type %d; the soft device takes two "
                "tensors of shape [b, 5, n] and of one type, %s",
                call.name, i, ShapeText(shape).c_str(),
                static_cast<int>(call.inputs.descs[i]->type),
                halves ? "float32 or float16" : "float32");
  }
  return ACL_SUCCESS;
}

// The shared areas of all pairs of a batch, and the areas of each. A box without a positive width
// and height has the area 0.
struct RotatedPairs {
  Value shared, of_first, of_second;
};

RotatedPairs PairsOf(NamedArithmetic& in, const NamedCall& call) {
  const bool corners = FlagOf(call, "trans", false);
  const auto boxes = [&](int input, bool column) {
    const int64_t batch = call.inputs.Shape(input)[0], count = call.inputs.Shape(input)[2];
    const std::vector<int64_t> shape =
        column ? std::vector<int64_t>{batch, count, 1} : std::vector<int64_t>{batch, 1, count};
    const auto number = [&](int64_t i) {
      return in.Read(input, shape, {kRotatedNumbers * count, 1, 1}, i * count);
    };
    const Value x = number(0), y = number(1), w = number(2), h = number(3);
    if (!corners) return RotatedBoxesOf(in, {x, y, w, h, number(4)});
    return RotatedBoxesOf(in, {in.Times(in.Add(x, w), 0.5), in.Times(in.Add(y, h), 0.5),
                               in.Subtract(w, x), in.Subtract(h, y), number(4)});
  };
  const RotatedBoxes a = boxes(0, true), b = boxes(1, false);
  const auto area = [&](const RotatedBoxes& of) {
    return in.Multiply(in.AtLeast(of.width, 0), in.AtLeast(of.height, 0));
  };
  RotatedPairs pairs{{}, area(a), area(b)};
  pairs.shared =
      in.Multiply(SharedArea(in, a, b), in.Positive(in.Multiply(pairs.of_first, pairs.of_second)));
  return pairs;
}

aclError CheckPairsOutput(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckSameType(call, call.outputs.descs[0]->type, ACL_FLOAT));
  return CheckShape(call, 0,
                    {call.inputs.Shape(0)[0], call.inputs.Shape(0)[2], call.inputs.Shape(1)[2]});
}

void WritePairs(NamedArithmetic& in, const NamedCall& call, const Value& values) {
  in.Write(values, 0, RowMajorStrides(call.outputs.Shape(0)));
}

// (boxes [b, 5, n], query_boxes [b, 5, k]) to areas [b, n, k].
aclError RotatedAreas(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckRotated(call, false));
  ACLTAPE_RETURN_IF_FAILED(CheckPairsOutput(call));
  NamedArithmetic in(call);
  WritePairs(in, call, PairsOf(in, call).shared);
  return in.status();
}

// The same areas in parts of the unions.
aclError RotatedOverlap(const NamedCall& call) {
  constexpr int64_t kMostQueries = 1600;
  ACLTAPE_RETURN_IF_FAILED(CheckRotated(call, false));
  ACLTAPE_RETURN_IF_FAILED(CheckPairsOutput(call));
  const std::string mode = call.Text("mode");
  if ((!mode.empty() && mode != "iou") || !FlagOf(call, "is_cross", true) ||
      RealOf(call, "v_threshold", 0) != 0 || RealOf(call, "e_threshold", 0) != 0 ||
      call.inputs.Shape(1)[2] > kMostQueries) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                "aclop %s: the mode is \"%s\", is_cross %s, and query_boxes have the shape %s; the "
                "soft device takes the mode \"iou\" of all pairs (is_cross), thresholds of 0, and "
                "1600 query boxes at most",
                call.name, mode.c_str(), FlagOf(call, "is_cross", true) ? "true" : "false",
                ShapeText(call.inputs.Shape(1)).c_str());
  }
  NamedArithmetic in(call);
  const RotatedPairs pairs = PairsOf(in, call);
  const Value all = in.Subtract(in.Add(pairs.of_first, pairs.of_second), pairs.shared);
  WritePairs(in, call, in.Divide(pairs.shared, DivisorOf(in, all)));
  return in.status();
}

// Boxes of an input by their corners and the tangent of their angle, each of shape [b, 1, n].
struct CornerBoxes {
  Value x, y, width, height, tangent;
};

aclError CheckPlacement(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckRotated(call, true));
  ACLTAPE_RETURN_IF_FAILED(
      CheckSameType(call, call.inputs.descs[0]->type, call.outputs.descs[0]->type));
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, call.inputs.Shape(0)));
  const std::vector<double> weights = RealsOf(call, "weight");
  const bool ones = std::all_of(weights.begin(), weights.end(), [](double w) { return w == 1; });
  if (call.inputs.Shape(0) == call.inputs.Shape(1) && ones) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
              "aclop %s: the inputs have the shapes %s and %s; the soft device takes two of one "
              "shape, and weights of 1",
              call.name, ShapeText(call.inputs.Shape(0)).c_str(),
              ShapeText(call.inputs.Shape(1)).c_str());
}

class Placement {
 public:
  explicit Placement(const NamedCall& call)
      : in(call), batch_(call.inputs.Shape(0)[0]), count_(call.inputs.Shape(0)[2]) {}

  Value Number(int input, int64_t i) {
    return in.Read(input, {batch_, 1, count_}, {kRotatedNumbers * count_, 1, 1}, i * count_);
  }
  CornerBoxes Boxes(int input) {
    const Value x0 = Number(input, 0), y0 = Number(input, 1);
    const Value x1 = Number(input, 2), y1 = Number(input, 3);
    return {in.Times(in.Add(x0, x1), 0.5), in.Times(in.Add(y0, y1), 0.5), in.Subtract(x1, x0),
            in.Subtract(y1, y0), in.Tan(in.Times(Number(input, 4), kDegree))};
  }
  void Write(int64_t i, const Value& value) {
    in.Write(value, 0, {kRotatedNumbers * count_, 1, 1}, i * count_);
  }

  static constexpr double kDegree = std::numbers::pi / 180;
  NamedArithmetic in;

 private:
  int64_t batch_, count_;
};

// (anchor_box, gt_box), each [b, 5, n] of (x0, y0, x1, y1, angle), to where the second lies beside
// the first: the distance of the centres in parts of the anchor, the logarithms of the ratios of
// the sizes, and the difference of the tangents of the angles.
aclError EncodeRotated(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckPlacement(call));
  Placement at(call);
  NamedArithmetic& in = at.in;
  const CornerBoxes anchor = at.Boxes(0), truth = at.Boxes(1);
  at.Write(0, in.Divide(in.Subtract(truth.x, anchor.x), anchor.width));
  at.Write(1, in.Divide(in.Subtract(truth.y, anchor.y), anchor.height));
  at.Write(2, in.Log(in.Divide(truth.width, anchor.width)));
  at.Write(3, in.Log(in.Divide(truth.height, anchor.height)));
  at.Write(4, in.Subtract(truth.tangent, anchor.tangent));
  return in.status();
}

// The inverse: (anchor_box, deltas) to boxes.
aclError DecodeRotated(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckPlacement(call));
  Placement at(call);
  NamedArithmetic& in = at.in;
  const CornerBoxes anchor = at.Boxes(0);
  const auto delta = [&](int64_t i) { return at.Number(1, i); };
  const Value x = in.Add(in.Multiply(delta(0), anchor.width), anchor.x);
  const Value y = in.Add(in.Multiply(delta(1), anchor.height), anchor.y);
  const Value half_width = in.Times(in.Multiply(in.Exp(delta(2)), anchor.width), 0.5);
  const Value half_height = in.Times(in.Multiply(in.Exp(delta(3)), anchor.height), 0.5);
  at.Write(0, in.Subtract(x, half_width));
  at.Write(1, in.Subtract(y, half_height));
  at.Write(2, in.Add(x, half_width));
  at.Write(3, in.Add(y, half_height));
  at.Write(4, in.Times(in.Atan(in.Add(anchor.tangent, delta(4))), 1 / Placement::kDegree));
  return in.status();
}

constexpr NamedOperator kRotatedBoxes[] = {
    {"RotatedIou", RotatedOverlap},      {"RotatedOverlaps", RotatedAreas},
    {"RotatedNMS", SuppressRotated},     {"RotatedBoxEncode", EncodeRotated},
    {"RotatedBoxDecode", DecodeRotated},
};

}  // namespace

NamedTable RotatedBoxesByName() { return kRotatedBoxes; }

}  // namespace acltape::device
