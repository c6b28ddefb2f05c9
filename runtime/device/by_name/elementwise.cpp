// Operators by name that compute each element of the result from one element of each input. An
// adapter calls most of them where it compiles operators while it runs (jit_compile), or where a
// tensor has a private format.
#include <cstring>
#include <type_traits>

#include "aclnnop/aclnn_add.h"
#include "aclnnop/aclnn_copy.h"
#include "aclnnop/aclnn_leaky_relu.h"
#include "aclnnop/aclnn_leaky_relu_backward.h"
#include "aclnnop/aclnn_sub.h"
#include "aclnnop/aclnn_swish.h"
#include "aclnnop/aclnn_swish_backward.h"
#include "aclnnop/aclnn_threshold_backward.h"
#include "runtime/device/by_name/arguments.h"
#include "runtime/device/by_name/arithmetic.h"
#include "runtime/device/by_name/table.h"

namespace acltape::device {
namespace {

using PrepareUnary = aclnnStatus (*)(const aclTensor*, aclTensor*, uint64_t*, aclOpExecutor**);
using PrepareBinary = aclnnStatus (*)(const aclTensor*, const aclTensor*, aclTensor*, uint64_t*,
                                      aclOpExecutor**);

// An operator by name that an operator of libopapi.so with the same inputs computes.
struct Counterpart {
  const char* name;
  const char* in_library;
};

constexpr Counterpart kOfOneTensor[] = {
    {"Abs", "aclnnAbs"},
    {"Acos", "aclnnAcos"},
    {"Acosh", "aclnnAcosh"},
    {"Asin", "aclnnAsin"},
    {"Asinh", "aclnnAsinh"},
    {"Atan", "aclnnAtan"},
    {"Atanh", "aclnnAtanh"},
    {"Ceil", "aclnnCeil"},
    {"Cos", "aclnnCos"},
    {"Cosh", "aclnnCosh"},
    {"Erf", "aclnnErf"},
    {"Erfc", "aclnnErfc"},
    {"Erfinv", "aclnnErfinv"},
    {"Exp", "aclnnExp"},
    {"Expm1", "aclnnExpm1"},
    {"FastGelu", "aclnnFastGelu"},
    {"Floor", "aclnnFloor"},
    {"Gelu", "aclnnGelu"},
    {"HardSwish", "aclnnHardswish"},
    {"Invert", "aclnnBitwiseNot"},
    {"IsFinite", "aclnnIsFinite"},
    {"Log", "aclnnLog"},
    {"Log1p", "aclnnLog1p"},
    {"LogicalNot", "aclnnLogicalNot"},
    {"Mish", "aclnnMish"},
    {"Neg", "aclnnNeg"},
    {"Relu", "aclnnRelu"},
    {"Reciprocal", "aclnnReciprocal"},
    {"Rsqrt", "aclnnRsqrt"},
    {"Sigmoid", "aclnnSigmoid"},
    {"Sign", "aclnnSign"},
    {"Sin", "aclnnSin"},
    {"Sinh", "aclnnSinh"},
    {"Sqrt", "aclnnSqrt"},
    {"Tan", "aclnnTan"},
    {"Tanh", "aclnnTanh"},
    {"Trunc", "aclnnTrunc"},
};

constexpr Counterpart kOfTwoTensors[] = {
    {"Mul", "aclnnMul"},
    {"RealDiv", "aclnnDiv"},
    {"Maximum", "aclnnMaximum"},
    {"Minimum", "aclnnMinimum"},
    {"Equal", "aclnnEqTensor"},
    {"NotEqual", "aclnnNeTensor"},
    {"Greater", "aclnnGtTensor"},
    {"GreaterEqual", "aclnnGeTensor"},
    {"Less", "aclnnLtTensor"},
    {"LessEqual", "aclnnLeTensor"},
    {"LogicalAnd", "aclnnLogicalAnd"},
    {"LogicalOr", "aclnnLogicalOr"},
    {"Pow", "aclnnPowTensorTensor"},
    {"MishGrad", "aclnnMishBackward"},
    {"FastGeluGrad", "aclnnFastGeluBackward"},
    {"GeluGrad", "aclnnGeluBackward"},  // the result, which comes third, does not count
    {"HardSwishGrad", "aclnnHardswishBackward"},
    {"SiluGrad", "aclnnSiluBackward"},
    {"Atan2", "aclnnAtan2"},
    {"BitwiseAnd", "aclnnBitwiseAndTensor"},
    {"BitwiseOr", "aclnnBitwiseOrTensor"},
    {"BitwiseXor", "aclnnBitwiseXorTensor"},
    {"FloorDiv", "aclnnFloorDivide"},
    {"FloorMod", "aclnnRemainderTensorTensor"},
    {"Mod", "aclnnFmodTensor"},
    {"LogAddExp", "aclnnLogAddExp"},
    {"Xlogy", "aclnnXLogYTensor"},
};

// Operators of (result, gradient), which the library takes in the other order.
constexpr Counterpart kOfResults[] = {
    {"SigmoidGrad", "aclnnSigmoidBackward"},
    {"TanhGrad", "aclnnTanhBackward"},
};

constexpr Counterpart kSums[] = {{"Add", "aclnnAdd"}, {"Sub", "aclnnSub"}};
static_assert(
    std::is_same_v<decltype(&aclnnAddGetWorkspaceSize), decltype(&aclnnSubGetWorkspaceSize)>);

const char* InLibrary(std::span<const Counterpart> rows, const char* name) {
  for (const Counterpart& row : rows) {
    if (std::strcmp(row.name, name) == 0) return row.in_library;
  }
  return nullptr;
}

aclError RunUnary(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, 1, 1));
  const std::vector<int64_t>& shape = call.inputs.Shape(0);
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, shape));
  if (ElementsOf(shape) > 0) {
    OperatorArguments own;
    ACLTAPE_RETURN_IF_FAILED(RunOperator<PrepareUnary>(call, InLibrary(kOfOneTensor, call.name),
                                                       own.Dense(call.inputs, 0, shape),
                                                       own.Dense(call.outputs, 0, shape)));
  }
  return ClearPadding(call);
}

// Two tensors of one type, whose shapes are broadcast. Either may be a number of the host.
struct BinaryArguments {
  explicit BinaryArguments(const NamedCall& call) : scratch(call.stream) {}

  aclError Read(const NamedCall& call) {
    ACLTAPE_RETURN_IF_FAILED(CheckCounts(call, 2, 1));
    ACLTAPE_RETURN_IF_FAILED(CheckOutput(call, 0, "the output"));
    ACLTAPE_RETURN_IF_FAILED(
        CheckSameType(call, call.inputs.descs[0]->type, call.inputs.descs[1]->type));
    ACLTAPE_RETURN_IF_FAILED(InputOnDevice(call, 0, "the first input", &scratch, &own, &first));
    ACLTAPE_RETURN_IF_FAILED(InputOnDevice(call, 1, "the second input", &scratch, &own, &second));
    out = own.Whole(call.outputs, 0);
    return ACL_SUCCESS;
  }

  NamedScratch scratch;
  OperatorArguments own;
  aclTensor *first = nullptr, *second = nullptr, *out = nullptr;
};

aclError RunBinary(const NamedCall& call) {
  BinaryArguments with(call);
  ACLTAPE_RETURN_IF_FAILED(with.Read(call));
  ACLTAPE_RETURN_IF_FAILED(RunOperator<PrepareBinary>(call, InLibrary(kOfTwoTensors, call.name),
                                                      with.first, with.second, with.out));
  return ClearPadding(call);
}

aclError RunOfResult(const NamedCall& call) {
  BinaryArguments with(call);
  ACLTAPE_RETURN_IF_FAILED(with.Read(call));
  ACLTAPE_RETURN_IF_FAILED(RunOperator<PrepareBinary>(call, InLibrary(kOfResults, call.name),
                                                      with.second, with.first, with.out));
  return ClearPadding(call);
}

// first + second, or first - second: a number times the second one is the library's.
aclError RunSum(const NamedCall& call) {
  BinaryArguments with(call);
  ACLTAPE_RETURN_IF_FAILED(with.Read(call));
  ACLTAPE_RETURN_IF_FAILED(RunOperator<decltype(&aclnnAddGetWorkspaceSize)>(
      call, InLibrary(kSums, call.name), with.first, with.second, with.own.Float(1), with.out));
  return ClearPadding(call);
}

// x * sigmoid(scale * x)
aclError RunSwish(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, 1, 1));
  const std::vector<int64_t>& shape = call.inputs.Shape(0);
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, shape));
  OperatorArguments own;
  ACLTAPE_RETURN_IF_FAILED(RunOperator<decltype(&aclnnSwishGetWorkspaceSize)>(
      call, "aclnnSwish", own.Dense(call.inputs, 0, shape),
      own.Float(static_cast<float>(RealOf(call, "scale", 1))), own.Dense(call.outputs, 0, shape)));
  return ClearPadding(call);
}

// (gradient, x, y)
aclError RunSwishGradient(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, 2, 1));
  const std::vector<int64_t>& shape = call.inputs.Shape(0);
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, shape));
  OperatorArguments own;
  ACLTAPE_RETURN_IF_FAILED(RunOperator<decltype(&aclnnSwishBackwardGetWorkspaceSize)>(
      call, "aclnnSwishBackward", own.Dense(call.inputs, 0, shape), own.Whole(call.inputs, 1),
      own.Float(static_cast<float>(RealOf(call, "scale", 1))), own.Dense(call.outputs, 0, shape)));
  return ClearPadding(call);
}

// x * x
aclError RunSquare(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, 1, 1));
  const std::vector<int64_t>& shape = call.inputs.Shape(0);
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, shape));
  if (ElementsOf(shape) > 0) {
    OperatorArguments own;
    aclTensor* x = own.Dense(call.inputs, 0, shape);
    ACLTAPE_RETURN_IF_FAILED(
        RunOperator<PrepareBinary>(call, "aclnnMul", x, x, own.Dense(call.outputs, 0, shape)));
  }
  return ClearPadding(call);
}

// (gradient, result): the gradient where the result is above the attribute, or above 0.
aclError RunThresholdGradient(const NamedCall& call) {
  BinaryArguments with(call);
  ACLTAPE_RETURN_IF_FAILED(with.Read(call));
  ACLTAPE_RETURN_IF_FAILED(RunOperator<decltype(&aclnnThresholdBackwardGetWorkspaceSize)>(
      call, "aclnnThresholdBackward", with.first, with.second,
      with.own.Float(static_cast<float>(RealOf(call, "threshold", 0))), with.out));
  return ClearPadding(call);
}

// (x): the elements below 0 times the attribute.
aclError RunLeakyRelu(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, 1, 1));
  const std::vector<int64_t>& shape = call.inputs.Shape(0);
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, shape));
  if (ElementsOf(shape) > 0) {
    OperatorArguments own;
    ACLTAPE_RETURN_IF_FAILED(RunOperator<decltype(&aclnnLeakyReluGetWorkspaceSize)>(
        call, "aclnnLeakyRelu", own.Dense(call.inputs, 0, shape),
        own.Float(static_cast<float>(RealOf(call, "negative_slope", 0))),
        own.Dense(call.outputs, 0, shape)));
  }
  return ClearPadding(call);
}

// (gradient, x)
aclError RunLeakyReluGradient(const NamedCall& call) {
  BinaryArguments with(call);
  ACLTAPE_RETURN_IF_FAILED(with.Read(call));
  ACLTAPE_RETURN_IF_FAILED(RunOperator<decltype(&aclnnLeakyReluBackwardGetWorkspaceSize)>(
      call, "aclnnLeakyReluBackward", with.first, with.second,
      with.own.Float(static_cast<float>(RealOf(call, "negative_slope", 0))), false, with.out));
  return ClearPadding(call);
}

// The type of the output says what to convert to.
aclError ConvertType(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, 1, 1));
  const std::vector<int64_t>& shape = call.inputs.Shape(0);
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, shape));
  if (ElementsOf(shape) > 0) {
    OperatorArguments own;
    ACLTAPE_RETURN_IF_FAILED(RunOperator<decltype(&aclnnInplaceCopyGetWorkspaceSize)>(
        call, "aclnnInplaceCopy", own.Dense(call.outputs, 0, shape),
        own.Dense(call.inputs, 0, shape)));
  }
  return ClearPadding(call);
}

constexpr NamedOperator kOthers[] = {
    {"Add", RunSum},
    {"Sub", RunSum},
    {"Cast", ConvertType},
    {"Swish", RunSwish},
    {"SwishGrad", RunSwishGradient},
    {"Square", RunSquare},
    {"ReluGrad", RunThresholdGradient},
    {"LeakyRelu", RunLeakyRelu},
    {"LeakyReluGrad", RunLeakyReluGradient},
    {"ThresholdGradV2D", RunThresholdGradient},
};

std::vector<NamedOperator> AllElementwise() {
  std::vector<NamedOperator> rows(std::begin(kOthers), std::end(kOthers));
  for (const Counterpart& row : kOfOneTensor) rows.push_back({row.name, RunUnary});
  for (const Counterpart& row : kOfTwoTensors) rows.push_back({row.name, RunBinary});
  for (const Counterpart& row : kOfResults) rows.push_back({row.name, RunOfResult});
  return rows;
}

}  // namespace

NamedTable ElementwiseByName() {
  static const std::vector<NamedOperator> rows = AllElementwise();
  return rows;
}

}  // namespace acltape::device
