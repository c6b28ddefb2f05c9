// A softmax over scores that are scaled and masked, and its gradient (ScaledMaskedSoftmax,
// ScaledMaskedSoftmaxGrad).
#include "aclnnop/aclnn_scaled_masked_softmax.h"
#include "aclnnop/aclnn_scaled_masked_softmax_backward.h"
#include "runtime/device/by_name/arguments.h"
#include "runtime/device/by_name/table.h"

namespace acltape::device {
namespace {

// `scores` tensors of one shape and type stand before the mask.
aclError CheckScores(const NamedCall& call, int scores) {
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, scores + 1, 1));
  const std::vector<int64_t>&shape = call.inputs.Shape(0), &mask = call.inputs.Shape(scores);
  const aclDataType type = call.inputs.descs[0]->type;
  bool fits = shape.size() >= 2 && mask.size() <= shape.size() &&
              call.inputs.descs[scores]->type == ACL_BOOL &&
              (type == ACL_FLOAT || type == ACL_FLOAT16 || type == ACL_BF16);
  for (size_t i = 0; fits && i < mask.size(); ++i) {
    const int64_t size = shape[shape.size() - mask.size() + i];
    fits = mask[i] == 1 || mask[i] == size;
  }
  if (!fits) {
    return Fail(ACL_ERROR_INVALID_PARAM,
                "aclop %s: the scores have the shape %s and the type %d, and the mask %s and %d; "
                "expected float32, float16 or bfloat16 of two dims at least, and bool that is "
                "broadcast to them",
                call.name, ShapeText(shape).c_str(), static_cast<int>(type),
                ShapeText(mask).c_str(), static_cast<int>(call.inputs.descs[scores]->type));
  }
  for (int i = 1; i < scores; ++i) {
    ACLTAPE_RETURN_IF_FAILED(CheckSameType(call, type, call.inputs.descs[i]->type));
    if (call.inputs.Shape(i) == shape) continue;
    return Fail(ACL_ERROR_INVALID_PARAM, "aclop %s: input %d has the shape %s, and input 0 %s",
                call.name, i, ShapeText(call.inputs.Shape(i)).c_str(), ShapeText(shape).c_str());
  }
  ACLTAPE_RETURN_IF_FAILED(CheckSameType(call, type, call.outputs.descs[0]->type));
  return CheckShape(call, 0, shape);
}

// (x, mask): the softmax of scale * x over the last dim, without what the mask names. The attribute
// fixed_triu_mask puts all above the diagonal in place of the mask.
aclError MaskedSoftmax(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckScores(call, 1));
  if (ElementsOf(call.inputs.Shape(0)) == 0) return ClearPadding(call);
  OperatorArguments own;
  ACLTAPE_RETURN_IF_FAILED(RunOperator<decltype(&aclnnScaledMaskedSoftmaxGetWorkspaceSize)>(
      call, "aclnnScaledMaskedSoftmax", own.Whole(call.inputs, 0), own.Whole(call.inputs, 1),
      RealOf(call, "scale", 1), FlagOf(call, "fixed_triu_mask", false),
      own.Whole(call.outputs, 0)));
  return ClearPadding(call);
}

// (gradient, y, mask) to the gradient of x above.
aclError MaskedSoftmaxGradient(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckScores(call, 2));
  if (ElementsOf(call.inputs.Shape(0)) == 0) return ClearPadding(call);
  OperatorArguments own;
  ACLTAPE_RETURN_IF_FAILED(RunOperator<decltype(&aclnnScaledMaskedSoftmaxBackwardGetWorkspaceSize)>(
      call, "aclnnScaledMaskedSoftmaxBackward", own.Whole(call.inputs, 0),
      own.Whole(call.inputs, 1), own.Whole(call.inputs, 2), RealOf(call, "scale", 1),
      FlagOf(call, "fixed_triu_mask", false), own.Whole(call.outputs, 0)));
  return ClearPadding(call);
}

constexpr NamedOperator kMaskedSoftmax[] = {
    {"ScaledMaskedSoftmax", MaskedSoftmax},
    {"ScaledMaskedSoftmaxGrad", MaskedSoftmaxGradient},
};

}  // namespace

NamedTable MaskedSoftmaxByName() { return kMaskedSoftmax; }

}  // namespace acltape::device
