// Boxes that no better box overlaps too far: a mask of them (NMSWithMask), their positions
// (NonMaxSuppressionV4), and those of several classes.
//
// All results have shapes that are known before, so nothing waits for the stream: what is left over
// of a result is 0, and a number says how much of it counts.
#include "runtime/device/by_name/arguments.h"
#include "runtime/device/by_name/suppression.h"
#include "runtime/device/by_name/table.h"

namespace acltape::device {
namespace {

using Value = NamedArithmetic::Value;

bool IsSuppressionFloat(const NamedTensors& tensors, int i) {
  const aclDataType type = tensors.descs[i]->type;
  return (type == ACL_FLOAT || type == ACL_FLOAT16 || type == ACL_BF16) && !tensors.InBlocks(i);
}

// box_scores [n, 5] or [n, 8], of which each row begins with x0, y0, x1, y1 and a score, to the
// first five numbers of each row, the numbers of the rows, and 1 for each box that stays. As on the
// product, the scores have no meaning: an earlier row is better than a later one.
aclError SuppressInOrder(const NamedCall& call) {
  constexpr int64_t kNumbers = 5;
  constexpr int64_t kGroup = 1024;  // rows of overlaps that are in memory together
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, 1, 3));
  const std::vector<int64_t>& shape = call.inputs.Shape(0);
  const auto type_of = [&](int i) { return call.outputs.descs[i]->type; };
  if (shape.size() != 2 || (shape[1] != kNumbers && shape[1] != 8) || shape[0] > kMostPositions ||
      !IsSuppressionFloat(call.inputs, 0) || type_of(0) != call.inputs.descs[0]->type ||
      type_of(1) != ACL_INT32 || type_of(2) != ACL_UINT8) {
    return Fail(ACL_ERROR_INVALID_PARAM,
                "aclop %s: box_scores has the shape %s and the type %d, and the outputs have the "
                "types %d, %d and %d; expected [n, 5] or [n, 8] in float32, float16 or bfloat16, "
                "the same type, int32 and uint8",
                call.name, ShapeText(shape).c_str(), static_cast<int>(call.inputs.descs[0]->type),
                static_cast<int>(type_of(0)), static_cast<int>(type_of(1)),
                static_cast<int>(type_of(2)));
  }
  const int64_t n = shape[0], width = shape[1];
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, {n, kNumbers}));
  for (int i : {1, 2}) ACLTAPE_RETURN_IF_FAILED(CheckShape(call, i, {n}));
  if (n == 0) return ClearPadding(call);
  const double threshold = RealOf(call, "iou_threshold", 0.5);
  NamedArithmetic in(call);
  const Value given = in.Copied(0, {n, kNumbers}, {width, 1});
  const Value gone = in.Filled({n}, 0);
  for (int64_t first = 0; first < n; first += kGroup) {
    const auto boxes = [&](const std::vector<int64_t>& of) {
      const auto number = [&](int64_t i) {
        return in.Part(given, of, {kNumbers, kNumbers}, first * kNumbers + i);
      };
      return Boxes{number(0), number(1), number(2), number(3)};
    };
    const Boxes rows = boxes({std::min(kGroup, n - first), 1}), columns = boxes({1, n - first});
    const auto area = [&](const Boxes& of) { return in.Multiply(Width(in, of), Height(in, of)); };
    const Boxes inner = Intersection(in, rows, columns);
    const Value shared =
        in.Multiply(in.AtLeast(Width(in, inner), 0), in.AtLeast(Height(in, inner), 0));
    // shared / (a + b - shared) > threshold, without a division, as the product has it.
    const Value most = in.Times(in.Add(area(rows), area(columns)), threshold / (1 + threshold));
    RemoveTaken(in, gone, in.Positive(in.Subtract(shared, most)), first);
  }
  in.Write(given, 0, {kNumbers, 1});
  in.Write(in.Counting({n}), 1, {1});
  in.Write(in.Not(gone), 2, {1});
  ACLTAPE_RETURN_IF_FAILED(in.status());
  return ClearPadding(call);
}

// One number, of shape [1, 1], from device memory or from the host.
aclError OneNumber(const NamedCall& call, int input, const char* name, NamedArithmetic* in,
                   Value* number) {
  if (ElementsOf(call.inputs.Shape(input)) != 1) {
    return Fail(ACL_ERROR_INVALID_PARAM, "aclop %s: %s has the shape %s, expected one element",
                call.name, name, ShapeText(call.inputs.Shape(input)).c_str());
  }
  if (!OnHost(call.inputs, input)) {
    ACLTAPE_RETURN_IF_FAILED(CheckInput(call, input, name));
    *number = in->Read(input, {1, 1}, {1, 1});
    return ACL_SUCCESS;
  }
  double value = 0;
  ACLTAPE_RETURN_IF_FAILED(ReadNumber(call, input, name, &value));
  *number = in->Filled({1, 1}, value);
  return ACL_SUCCESS;
}

aclError CheckPositions(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckCounts(call, 5, 2));
  for (int i : {0, 1}) {
    ACLTAPE_RETURN_IF_FAILED(CheckInput(call, i, i == 0 ? "boxes" : "scores"));
    ACLTAPE_RETURN_IF_FAILED(CheckOutput(call, i, i == 0 ? "selected_indices" : "valid_outputs"));
  }
  const std::vector<int64_t>& boxes = call.inputs.Shape(0);
  const bool floats = IsSuppressionFloat(call.inputs, 0) && IsSuppressionFloat(call.inputs, 1);
  if (boxes.size() != 2 || boxes[1] != kBoxNumbers || boxes[0] > kMostPositions || !floats ||
      call.inputs.Shape(1) != std::vector<int64_t>{boxes[0]}) {
    return Fail(ACL_ERROR_INVALID_PARAM,
                "aclop %s: boxes have the shape %s and the type %d, and scores %s and %d; expected "
                "[n, 4] and [n], in float32, float16 or bfloat16",
                call.name, ShapeText(boxes).c_str(), static_cast<int>(call.inputs.descs[0]->type),
                ShapeText(call.inputs.Shape(1)).c_str(),
                static_cast<int>(call.inputs.descs[1]->type));
  }
  const aclDataType most = call.inputs.descs[2]->type,
                    thresholds[] = {call.inputs.descs[3]->type, call.inputs.descs[4]->type};
  const auto fits = [](aclDataType type) { return type == ACL_FLOAT || type == ACL_FLOAT16; };
  if (most != ACL_INT32 || !fits(thresholds[0]) || !fits(thresholds[1])) {
    return Fail(ACL_ERROR_INVALID_PARAM,
                "aclop %s: max_output_size has the type %d, and the thresholds have %d and %d; "
                "expected int32, and float32 or float16",
                call.name, static_cast<int>(most), static_cast<int>(thresholds[0]),
                static_cast<int>(thresholds[1]));
  }
  if (call.outputs.Shape(0).size() == 1 && ElementsOf(call.outputs.Shape(1)) == 1 &&
      call.outputs.descs[0]->type == ACL_INT32 && call.outputs.descs[1]->type == ACL_INT32) {
    return ACL_SUCCESS;
  }
  return Fail(
      ACL_ERROR_INVALID_PARAM,
      "aclop %s: the outputs have the shapes %s and %s and the types %d and %d; expected "
      "one dim and one element, in int32",
      call.name, ShapeText(call.outputs.Shape(0)).c_str(), ShapeText(call.outputs.Shape(1)).c_str(),
      static_cast<int>(call.outputs.descs[0]->type), static_cast<int>(call.outputs.descs[1]->type));
}

// (boxes [n, 4], scores [n], max_output_size, iou_threshold, score_threshold) to the positions of
// the boxes that stay, from the highest score on, and their number. A box is given by any two
// opposite corners. The rules are those of NonMaxSuppressionV3 of the vendor's operators for the
// AI CPU. The first output keeps its shape: torch_npu takes max_output_size for it, with and
// without pad_to_max_output_size, and elements that are left over are 0.
aclError SuppressToPositions(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckPositions(call));
  const int64_t n = call.inputs.Shape(0)[0], places = call.outputs.Shape(0)[0];
  const int64_t picks = std::min(n, places);
  NamedArithmetic in(call);
  Value most, overlap, least;
  ACLTAPE_RETURN_IF_FAILED(OneNumber(call, 2, "max_output_size", &in, &most));
  ACLTAPE_RETURN_IF_FAILED(OneNumber(call, 3, "iou_threshold", &in, &overlap));
  ACLTAPE_RETURN_IF_FAILED(OneNumber(call, 4, "score_threshold", &in, &least));
  in.Write(in.Filled({places}, 0), 0, {1});
  if (picks == 0) {
    in.Write(in.Filled({1}, 0), 1, {1});
    ACLTAPE_RETURN_IF_FAILED(in.status());
    return ClearPadding(call);
  }
  const auto number = [&](int64_t i) { return in.Read(0, {1, n}, {n, kBoxNumbers}, i); };
  const Value a = number(0), b = number(1), c = number(2), d = number(3);
  const Boxes boxes{in.Less(a, c), in.Less(b, d), in.Greater(a, c), in.Greater(b, d)};
  const Value scores = in.Read(1, {1, n}, {n, 1});
  const Value eligible = in.Positive(in.Subtract(scores, least));
  const PickedBoxes picked = PickBoxes(in, boxes, eligible, scores, overlap, picks);
  const Value counts =
      in.Multiply(picked.found, in.Positive(in.Subtract(most, in.Counting({1, picks}))));
  in.Write(in.Multiply(picked.position, counts), 0, {places, 1});
  in.Write(in.Sum(counts, {1}), 1, {1});
  ACLTAPE_RETURN_IF_FAILED(in.status());
  return ClearPadding(call);
}

constexpr NamedOperator kSuppressions[] = {
    {"NMSWithMask", SuppressInOrder},
    {"NonMaxSuppressionV4", SuppressToPositions},
    {"BatchMultiClassNonMaxSuppression", SuppressByClass},
};

}  // namespace

NamedTable SuppressionsByName() { return kSuppressions; }

}  // namespace acltape::device
