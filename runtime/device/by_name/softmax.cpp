// Softmax along a dim, its logarithm and their gradients, by the operator's name.
#include <type_traits>

#include "aclnnop/aclnn_log_softmax.h"
#include "aclnnop/aclnn_logsoftmax_backward.h"
#include "aclnnop/aclnn_softmax.h"
#include "aclnnop/aclnn_softmax_backward.h"
#include "runtime/device/by_name/arguments.h"
#include "runtime/device/by_name/table.h"

namespace acltape::device {
namespace {

using PrepareSoftmax = decltype(&aclnnSoftmaxGetWorkspaceSize);
using PrepareSoftmaxGradient = decltype(&aclnnSoftmaxBackwardGetWorkspaceSize);
static_assert(std::is_same_v<PrepareSoftmax, decltype(&aclnnLogSoftmaxGetWorkspaceSize)>);
static_assert(
    std::is_same_v<PrepareSoftmaxGradient, decltype(&aclnnLogSoftmaxBackwardGetWorkspaceSize)>);

// Reads the one dim of a list, which is the last one where the attribute is not given. All tensors
// have one type and one shape.
aclError ReadSoftmax(const NamedCall& call, int inputs, const char* axes, int64_t* dim) {
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, inputs, 1));
  const std::vector<int64_t>& shape = call.inputs.Shape(0);
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, shape));
  for (int i = 1; i < inputs; ++i) {
    ACLTAPE_RETURN_IF_FAILED(
        CheckSameType(call, call.inputs.descs[0]->type, call.inputs.descs[i]->type));
    if (call.inputs.Shape(i) == shape) continue;
    return Fail(ACL_ERROR_INVALID_PARAM, "aclop %s: input %d has the shape %s, and the first %s",
                call.name, i, ShapeText(call.inputs.Shape(i)).c_str(), ShapeText(shape).c_str());
  }
  ACLTAPE_RETURN_IF_FAILED(
      CheckSameType(call, call.inputs.descs[0]->type, call.outputs.descs[0]->type));
  const std::vector<int64_t> dims = IntegersOf(call, axes);
  const auto rank = std::max<int64_t>(static_cast<int64_t>(shape.size()), 1);
  *dim = dims.empty() ? -1 : dims[0];
  if (dims.size() <= 1 && *dim >= -rank && *dim < rank) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
              "aclop %s: %s is %s; the soft device takes one dim of a tensor of shape %s",
              call.name, axes, ShapeText(dims).c_str(), ShapeText(shape).c_str());
}

aclError RunSoftmax(const NamedCall& call, const char* in_library) {
  int64_t dim = 0;
  ACLTAPE_RETURN_IF_FAILED(ReadSoftmax(call, 1, "axes", &dim));
  const std::vector<int64_t>& shape = call.inputs.Shape(0);
  if (ElementsOf(shape) > 0) {
    OperatorArguments own;
    ACLTAPE_RETURN_IF_FAILED(RunOperator<PrepareSoftmax>(call, in_library,
                                                         own.Dense(call.inputs, 0, shape), dim,
                                                         own.Dense(call.outputs, 0, shape)));
  }
  return ClearPadding(call);
}

// `gradient` and `result` are positions of inputs.
aclError RunSoftmaxGradient(const NamedCall& call, const char* in_library, const char* axes,
                            int gradient, int result) {
  int64_t dim = 0;
  ACLTAPE_RETURN_IF_FAILED(ReadSoftmax(call, 2, axes, &dim));
  const std::vector<int64_t>& shape = call.inputs.Shape(0);
  if (ElementsOf(shape) > 0) {
    OperatorArguments own;
    ACLTAPE_RETURN_IF_FAILED(RunOperator<PrepareSoftmaxGradient>(
        call, in_library, own.Dense(call.inputs, gradient, shape),
        own.Dense(call.inputs, result, shape), dim, own.Dense(call.outputs, 0, shape)));
  }
  return ClearPadding(call);
}

aclError TakeSoftmax(const NamedCall& call) { return RunSoftmax(call, "aclnnSoftmax"); }
aclError TakeLogSoftmax(const NamedCall& call) { return RunSoftmax(call, "aclnnLogSoftmax"); }

// (y, dy)
aclError GradientOfSoftmax(const NamedCall& call) {
  return RunSoftmaxGradient(call, "aclnnSoftmaxBackward", "axes", 1, 0);
}
// (dy, y)
aclError GradientOfLogSoftmax(const NamedCall& call) {
  return RunSoftmaxGradient(call, "aclnnLogSoftmaxBackward", "axis", 0, 1);
}

constexpr NamedOperator kSoftmaxes[] = {
    {"SoftmaxV2", TakeSoftmax},
    {"LogSoftmaxV2", TakeLogSoftmax},
    {"SoftmaxGrad", GradientOfSoftmax},
    {"LogSoftmaxGrad", GradientOfLogSoftmax},
};

}  // namespace

NamedTable SoftmaxesByName() { return kSoftmaxes; }

}  // namespace acltape::device
