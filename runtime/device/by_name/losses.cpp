// Losses over classes and over squared distances, and their gradients, by the operator's name.
#include "aclnnop/aclnn_mse_loss.h"
#include "aclnnop/aclnn_mse_loss_backward.h"
#include "aclnnop/aclnn_nll_loss.h"
#include "aclnnop/aclnn_nll_loss_backward.h"
#include "runtime/device/by_name/arguments.h"
#include "runtime/device/by_name/table.h"

namespace acltape::device {
namespace {

// Reads the attribute as the number that the library has for it.
aclError ReadLossReduction(const NamedCall& call, int64_t* reduction) {
  constexpr const char* kReductionNames[] = {"none", "mean", "sum"};
  const std::string given = call.Text("reduction");
  for (int i = 0; i < 3; ++i) {
    if (given != kReductionNames[i] && !(given.empty() && i == 1)) continue;
    *reduction = i;
    return ACL_SUCCESS;
  }
  return Fail(ACL_ERROR_INVALID_PARAM, "aclop %s: reduction is %s, expected none, mean or sum",
              call.name, given.c_str());
}

aclError CheckLossInput(const NamedCall& call, int i, const std::vector<int64_t>& shape) {
  ACLTAPE_RETURN_IF_FAILED(
      CheckSameType(call, call.inputs.descs[0]->type, call.inputs.descs[i]->type));
  if (call.inputs.Shape(i) == shape) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, "aclop %s: input %d has the shape %s, expected %s",
              call.name, i, ShapeText(call.inputs.Shape(i)).c_str(), ShapeText(shape).c_str());
}

// The shape of a loss: that of its parts, or no dims.
std::vector<int64_t> LossShape(int64_t reduction, const std::vector<int64_t>& parts) {
  return reduction == 0 ? parts : std::vector<int64_t>{};
}

// (x, y)
aclError SquaredLoss(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, 2, 1));
  const std::vector<int64_t>& shape = call.inputs.Shape(0);
  int64_t reduction = 0;
  ACLTAPE_RETURN_IF_FAILED(ReadLossReduction(call, &reduction));
  ACLTAPE_RETURN_IF_FAILED(CheckLossInput(call, 1, shape));
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, LossShape(reduction, shape)));
  if (ElementsOf(call.outputs.Shape(0)) == 0) return ClearPadding(call);
  OperatorArguments own;
  ACLTAPE_RETURN_IF_FAILED(RunOperator<decltype(&aclnnMseLossGetWorkspaceSize)>(
      call, "aclnnMseLoss", own.Dense(call.inputs, 0, shape), own.Dense(call.inputs, 1, shape),
      reduction, own.Whole(call.outputs, 0)));
  return ClearPadding(call);
}

// (x, y, gradient) to the gradient for x.
aclError SquaredLossGradient(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, 3, 1));
  const std::vector<int64_t>& shape = call.inputs.Shape(0);
  int64_t reduction = 0;
  ACLTAPE_RETURN_IF_FAILED(ReadLossReduction(call, &reduction));
  ACLTAPE_RETURN_IF_FAILED(CheckLossInput(call, 1, shape));
  // An adapter may have spread the gradient of one number over all elements.
  if (call.inputs.Shape(2) != shape) {
    ACLTAPE_RETURN_IF_FAILED(CheckLossInput(call, 2, LossShape(reduction, shape)));
  }
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, shape));
  if (ElementsOf(shape) == 0) return ClearPadding(call);
  OperatorArguments own;
  ACLTAPE_RETURN_IF_FAILED(RunOperator<decltype(&aclnnMseLossBackwardGetWorkspaceSize)>(
      call, "aclnnMseLossBackward", own.Whole(call.inputs, 2), own.Dense(call.inputs, 0, shape),
      own.Dense(call.inputs, 1, shape), reduction, own.Dense(call.outputs, 0, shape)));
  return ClearPadding(call);
}

// Checks logarithms of probabilities at input 0, classes and the weight of each class.
aclError CheckClasses(const NamedCall& call, int target, int weight) {
  const std::vector<int64_t>& x = call.inputs.Shape(0);
  const aclDataType type = call.inputs.descs[target]->type;
  if (x.size() != 2 || call.inputs.Shape(target) != std::vector<int64_t>{x[0]} ||
      (type != ACL_INT32 && type != ACL_INT64)) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                "aclop %s: x has the shape %s, and the target %s and the type %d; the soft device "
                "takes a row for each target, as int32 or int64",
                call.name, ShapeText(x).c_str(), ShapeText(call.inputs.Shape(target)).c_str(),
                static_cast<int>(type));
  }
  return CheckLossInput(call, weight, {x[1]});
}

// (x, target, weight) to the loss and the sum of the weights.
aclError ClassLoss(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, 3, 2));
  int64_t reduction = 0;
  ACLTAPE_RETURN_IF_FAILED(ReadLossReduction(call, &reduction));
  ACLTAPE_RETURN_IF_FAILED(CheckClasses(call, 1, 2));
  const std::vector<int64_t>& x = call.inputs.Shape(0);
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, LossShape(reduction, {x[0]})));
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 1, {}));
  OperatorArguments own;
  const auto input = [&](int i) { return own.Whole(call.inputs, i); };
  ACLTAPE_RETURN_IF_FAILED(RunOperator<decltype(&aclnnNLLLossGetWorkspaceSize)>(
      call, "aclnnNLLLoss", input(0), input(1), input(2), reduction,
      IntegerOf(call, "ignore_index", -100), own.Whole(call.outputs, 0),
      own.Dense(call.outputs, 1, {})));
  return ClearPadding(call);
}

// (x, gradient, target, weight, sum of the weights) to the gradient for x.
aclError ClassLossGradient(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, 5, 1));
  int64_t reduction = 0;
  ACLTAPE_RETURN_IF_FAILED(ReadLossReduction(call, &reduction));
  ACLTAPE_RETURN_IF_FAILED(CheckClasses(call, 2, 3));
  const std::vector<int64_t>& x = call.inputs.Shape(0);
  ACLTAPE_RETURN_IF_FAILED(CheckLossInput(call, 1, LossShape(reduction, {x[0]})));
  ACLTAPE_RETURN_IF_FAILED(CheckLossInput(call, 4, {}));
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, x));
  if (ElementsOf(x) == 0) return ClearPadding(call);
  OperatorArguments own;
  const auto input = [&](int i) { return own.Whole(call.inputs, i); };
  ACLTAPE_RETURN_IF_FAILED(RunOperator<decltype(&aclnnNLLLossBackwardGetWorkspaceSize)>(
      call, "aclnnNLLLossBackward", input(1), input(0), input(2), input(3), reduction,
      IntegerOf(call, "ignore_index", -100), input(4), own.Dense(call.outputs, 0, x)));
  return ClearPadding(call);
}

constexpr NamedOperator kLossesOfRows[] = {
    {"MseLoss", SquaredLoss},
    {"MseLossGrad", SquaredLossGradient},
    {"NLLLoss", ClassLoss},
    {"NLLLossGrad", ClassLossGradient},
};

}  // namespace

NamedTable LossesOfRowsByName() { return kLossesOfRows; }

}  // namespace acltape::device
