// The cross entropy of classes, and its gradient, which the operator gives beside it
// (SoftmaxCrossEntropyWithLogits).
#include "runtime/device/by_name/arguments.h"
#include "runtime/device/by_name/arithmetic.h"
#include "runtime/device/by_name/table.h"

namespace acltape::device {
namespace {

using Value = NamedArithmetic::Value;

// (features, labels), each [batch, classes], to losses [batch] and gradients [batch, classes].
aclError CrossEntropy(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, 2, 2));
  const std::vector<int64_t>& shape = call.inputs.Shape(0);
  const aclDataType type = call.inputs.descs[0]->type;
  if (shape.size() != 2 || call.inputs.Shape(1) != shape ||
      (type != ACL_FLOAT && type != ACL_FLOAT16)) {
    return Fail(
        ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
        "aclop %s: features have the shape %s and the type %d, and labels the shape %s; the "
        "soft device takes [batch, classes] for both, in float32 or float16",
        call.name, ShapeText(shape).c_str(), static_cast<int>(type),
        ShapeText(call.inputs.Shape(1)).c_str());
  }
  ACLTAPE_RETURN_IF_FAILED(CheckSameType(call, type, call.inputs.descs[1]->type));
  for (int i = 0; i < 2; ++i) {
    ACLTAPE_RETURN_IF_FAILED(CheckSameType(call, type, call.outputs.descs[i]->type));
  }
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, {shape[0]}));
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 1, shape));
  const std::vector<int64_t> strides{shape[1], 1};
  NamedArithmetic in(call);
  const Value features = in.Read(0, shape, strides), labels = in.Read(1, shape, strides);
  const Value losses = in.Sum(in.Multiply(labels, in.LogSoftmax(features, 1)), {1});
  in.Write(in.Times(losses, -1), 0, {1});
  in.Write(in.Subtract(in.Softmax(features, 1), labels), 1, strides);
  return in.status();
}

constexpr NamedOperator kLosses[] = {
    {"SoftmaxCrossEntropyWithLogits", CrossEntropy},
};

}  // namespace

NamedTable LossesByName() { return kLosses; }

}  // namespace acltape::device
