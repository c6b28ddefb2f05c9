// The rotated boxes that no box of a higher score overlaps too far (RotatedNMS).
//
// How many are left is known when all have been compared, so the call waits for the stream and
// tells their number in the descriptions of its outputs, which aclopCompileAndExecuteV2 alone
// allows.
#include "runtime/device/by_name/arguments.h"
#include "runtime/device/by_name/rotated_geometry.h"
#include "runtime/device/by_name/suppression.h"

namespace acltape::device {
namespace {

using Value = NamedArithmetic::Value;

constexpr double kLeastArea = 1e-14;  // a smaller box overlaps none

// The overlap of each two boxes: their intersection in parts of their union.
Value OverlapsOf(NamedArithmetic& in, const Value& boxes) {
  const int64_t count = boxes.shape[0];
  const auto along = [&](const std::vector<int64_t>& shape) {
    const auto number = [&](int64_t i) {
      return in.Part(boxes, shape, {kRotatedNumbers, kRotatedNumbers}, i);
    };
    return RotatedBoxesOf(in, {number(0), number(1), number(2), number(3), number(4)});
  };
  const RotatedBoxes a = along({count, 1}), b = along({1, count});
  const Value of_a = in.Multiply(a.width, a.height), of_b = in.Multiply(b.width, b.height);
  const auto has_area = [&](const Value& area) { return in.Positive(in.Plus(area, -kLeastArea)); };
  const Value both = in.Multiply(has_area(of_a), has_area(of_b));
  const Value common = in.Multiply(SharedArea(in, a, b), both);
  const Value all = in.Subtract(in.Add(of_a, of_b), common);
  // 0 where a box has no area.
  return in.Divide(common, DivisorOf(in, in.Multiply(all, both)));
}

// 1 for each box of a row that is left, when the boxes stand in the order of their scores.
Value Left(NamedArithmetic& in, const Value& scores, const Value& overlaps, double threshold,
           double least_score) {
  const Value gone = in.Positive(in.Plus(in.Times(scores, -1), least_score));
  RemoveTaken(in, gone, in.Positive(in.Plus(overlaps, -threshold)), 0);
  return in.Not(gone);
}

struct SuppressionSettings {
  double overlap, least_score;
  int64_t most;  // -1: all
};

aclError ReadSuppression(const NamedCall& call, SuppressionSettings* with) {
  const std::vector<int64_t>& boxes = call.inputs.Shape(0);
  const std::vector<int64_t>& scores = call.inputs.Shape(1);
  const aclDataType label = call.inputs.descs[2]->type;
  if (boxes.size() != 2 || boxes[1] != kRotatedNumbers ||
      scores != std::vector<int64_t>{boxes[0]} || call.inputs.descs[0]->type != ACL_FLOAT ||
      call.inputs.descs[1]->type != ACL_FLOAT || call.inputs.InBlocks(0)) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                "aclop %s: boxes have the shape %s and the type %d, scores %s and %d; the soft "
                "device takes float32 of the shapes [n, 5] and [n]",
                call.name, ShapeText(boxes).c_str(), static_cast<int>(call.inputs.descs[0]->type),
                ShapeText(scores).c_str(), static_cast<int>(call.inputs.descs[1]->type));
  }
  if (ElementsOf(call.inputs.Shape(2)) != 1 || (label != ACL_INT32 && label != ACL_INT64)) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                "aclop %s: labels have the shape %s and the type %d; the soft device takes one "
                "label for all boxes, in int32 or int64",
                call.name, ShapeText(call.inputs.Shape(2)).c_str(), static_cast<int>(label));
  }
  if (IntegerOf(call, "mode", 0) != 0 || !FlagOf(call, "is_angle", true)) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                "aclop %s: mode is %lld and is_angle %s; the product takes the mode 0 (x, y, w, h, "
                "angle) alone, and the soft device angles in degrees",
                call.name, static_cast<long long>(IntegerOf(call, "mode", 0)),
                FlagOf(call, "is_angle", true) ? "true" : "false");
  }
  if (call.outputs.descs[0]->type != ACL_FLOAT || call.outputs.descs[1]->type != ACL_INT32) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                "aclop %s: the outputs have the types %d and %d, expected float32 and int32",
                call.name, static_cast<int>(call.outputs.descs[0]->type),
                static_cast<int>(call.outputs.descs[1]->type));
  }
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, boxes));
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 1, scores));
  *with = {RealOf(call, "iou_threshold", 0), RealOf(call, "score_threshold", 0),
           IntegerOf(call, "max_output_size", -1)};
  if (with->most >= -1 && call.told != nullptr) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM,
              "aclop %s: max_output_size is %lld; it is -1 or a number of boxes, and the number "
              "that is left is told by aclopCompileAndExecuteV2 alone",
              call.name, static_cast<long long>(with->most));
}

// Says that an output has this many rows.
void SetRows(aclTensorDesc* desc, int64_t rows) {
  desc->shape[0] = rows;
  if (!desc->storage_shape.empty()) desc->storage_shape[0] = rows;
}

}  // namespace

// (boxes, scores, labels) to the boxes that are left and their positions, from the highest score to
// the lowest.
aclError SuppressRotated(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, 3, 2));
  SuppressionSettings with{};
  ACLTAPE_RETURN_IF_FAILED(ReadSuppression(call, &with));
  const int64_t count = call.inputs.Shape(0)[0];
  NamedArithmetic in(call);
  int64_t left = 0;
  if (count > 0) {
    const Value order = in.Descending(in.Read(1, {count}, {1}));
    const Value boxes = in.Read(0, {count, kRotatedNumbers}, {kRotatedNumbers, 1});
    const Value scores = in.As(in.Rows(in.Read(1, {count, 1}, {1, 1}), order), {count});
    const Value kept = in.NotZero(
        Left(in, scores, OverlapsOf(in, in.Rows(boxes, order)), with.overlap, with.least_score));
    left = with.most < 0 ? kept.shape[0] : std::min(kept.shape[0], with.most);
    const Value positions = in.At(order, in.First(kept, left));
    in.Write(in.Rows(boxes, positions), 0, {kRotatedNumbers, 1});
    in.Write(positions, 1, {1});
    ACLTAPE_RETURN_IF_FAILED(in.status());
  }
  for (int i = 0; i < 2; ++i) SetRows(call.told[i], left);
  return ACL_SUCCESS;
}

}  // namespace acltape::device
