// Boxes of the cells of a grid that belong to true boxes (GridAssignPositive).
#include "runtime/device/by_name/arguments.h"
#include "runtime/device/by_name/arithmetic.h"
#include "runtime/device/by_name/table.h"
#include "runtime/device/short_floats.h"

namespace acltape::device {
namespace {

using Value = NamedArithmetic::Value;

enum GridInput {
  kAssigned,       // [n]: the true box of each box, from 1 on
  kGridOverlaps,   // [k, n]
  kResponsible,    // [n]: not 0 where the box is responsible for the object in its cell
  kBestOverlaps,   // [n]: the greatest overlap of each box
  kBestTruths,     // [n]: and the true box that has it, from 0 on
  kTruthOverlaps,  // [k]: the greatest overlap of each true box
  kTruthBoxes,     // [k]: and the box that has it
  kTruthCount,     // [1]: true boxes that count
  kGridInputs,
};

aclError CheckGrid(const NamedCall& call) {
  const std::vector<int64_t>& overlaps = call.inputs.Shape(kGridOverlaps);
  const aclDataType type = call.inputs.descs[kAssigned]->type;
  const bool matrix = overlaps.size() == 2 && (type == ACL_FLOAT || type == ACL_FLOAT16);
  const int64_t k = matrix ? overlaps[0] : 0, n = matrix ? overlaps[1] : 0;
  const struct {
    GridInput input;
    aclDataType type;
    std::vector<int64_t> shape;
  } kWanted[] = {{kAssigned, type, {n}},         {kGridOverlaps, type, {k, n}},
                 {kResponsible, ACL_UINT8, {n}}, {kBestOverlaps, type, {n}},
                 {kBestTruths, ACL_INT32, {n}},  {kTruthOverlaps, type, {k}},
                 {kTruthBoxes, ACL_INT32, {k}}};
  for (const auto& wanted : kWanted) {
    const aclTensorDesc& desc = *call.inputs.descs[wanted.input];
    if (matrix && desc.type == wanted.type && desc.shape == wanted.shape) continue;
    return Fail(ACL_ERROR_INVALID_PARAM,
                "aclop %s: input %d has the type %d and the shape %s, and overlaps have the shape "
                "%s; expected [k, n], [n] and [k], with overlaps in float32 or float16, flags in "
                "uint8 and positions in int32",
                call.name, static_cast<int>(wanted.input), static_cast<int>(desc.type),
                ShapeText(desc.shape).c_str(), ShapeText(overlaps).c_str());
  }
  constexpr int64_t kMostTruths = 256, kMostBoxes = int64_t{1} << 24;
  const aclTensorDesc& count = *call.inputs.descs[kTruthCount];
  if (k >= kMostTruths || n > kMostBoxes || count.type != ACL_INT32 ||
      ElementsOf(count.shape) != 1 || call.outputs.descs[0]->type != type ||
      call.inputs.InBlocks(kGridOverlaps)) {
    return Fail(ACL_ERROR_INVALID_PARAM,
                "aclop %s: overlaps have the shape %s, num_gts the type %d and the shape %s; "
                "expected less than 256 true boxes and one int32, and one type for the overlaps "
                "and the result",
                call.name, ShapeText(overlaps).c_str(), static_cast<int>(count.type),
                ShapeText(count.shape).c_str());
  }
  return CheckShape(call, 0, {n});
}

// A threshold as the product compares with it: in the type of the overlaps.
double ThresholdOf(const NamedCall& call, const char* attribute) {
  const auto threshold = static_cast<float>(RealOf(call, attribute, 0));
  const bool half = call.inputs.descs[kAssigned]->type == ACL_FLOAT16;
  return half ? float{Half{threshold}} : threshold;
}

// A responsible box whose greatest overlap is above pos_iou_thr belongs to the true box that has
// it. Then each true box whose greatest overlap is above min_pos_iou takes the responsible boxes
// with this overlap (gt_max_assign_all), or the one box that gt_argmax_overlaps names. A later true
// box takes from an earlier one. The rules are those of the vendor's kernel, also for flags above
// 1: they count where all boxes are taken, and not where one is.
aclError AssignPositive(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, kGridInputs, 1));
  ACLTAPE_RETURN_IF_FAILED(CheckGrid(call));
  const int64_t k = call.inputs.Shape(kGridOverlaps)[0], n = call.inputs.Shape(kGridOverlaps)[1];
  if (n == 0) return ClearPadding(call);
  NamedArithmetic in(call);
  const auto of_boxes = [&](int input) { return in.Read(input, {1, n}, {n, 1}); };
  const auto of_truths = [&](int input) { return in.Read(input, {k, 1}, {1, 1}); };
  const auto equal = [&](const Value& a, const Value& b) {
    return in.Not(in.Positive(in.Abs(in.Subtract(a, b))));
  };
  const Value flags = of_boxes(kResponsible), responsible = in.Positive(flags);
  const Value above =
      in.Positive(in.Plus(of_boxes(kBestOverlaps), -ThresholdOf(call, "pos_iou_thr")));
  Value assigned = in.Where(in.Multiply(above, responsible), in.Plus(of_boxes(kBestTruths), 1),
                            of_boxes(kAssigned));
  if (k > 0) {
    const Value numbers = in.Counting({k, 1});
    const Value count = in.Read(kTruthCount, {1, 1}, {1, 1});
    const Value takes = in.Multiply(
        in.Positive(in.Plus(of_truths(kTruthOverlaps), -ThresholdOf(call, "min_pos_iou"))),
        in.Positive(in.Subtract(count, numbers)));
    const Value taken =
        FlagOf(call, "gt_max_assign_all", false)
            ? in.Multiply(equal(in.Read(kGridOverlaps, {k, n}, {n, 1}), of_truths(kTruthOverlaps)),
                          responsible)
            : in.Multiply(equal(in.Counting({1, n}), of_truths(kTruthBoxes)),
                          equal(flags, in.Filled({1, 1}, 1)));
    const Value last = in.Greatest(in.Multiply(in.Multiply(taken, takes), in.Plus(numbers, 1)), 0);
    assigned = in.Where(last, last, assigned);
  }
  in.Write(assigned, 0, {n, 1});
  ACLTAPE_RETURN_IF_FAILED(in.status());
  return ClearPadding(call);
}

constexpr NamedOperator kAssignments[] = {
    {"GridAssignPositive", AssignPositive},
};

}  // namespace

NamedTable AssignmentsByName() { return kAssignments; }

}  // namespace acltape::device
