// Operators by name that fill a tensor with one value or two.
#include "aclnnop/aclnn_fill_scalar.h"
#include "aclnnop/aclnn_fill_tensor.h"
#include "aclnnop/aclnn_one_hot.h"
#include "runtime/device/by_name/arguments.h"
#include "runtime/device/by_name/arithmetic.h"
#include "runtime/device/by_name/table.h"

namespace acltape::device {
namespace {

aclError FillOutput(const NamedCall& call, const aclScalar* value, OperatorArguments* own) {
  if (ElementsOf(call.outputs.Shape(0)) > 0) {
    ACLTAPE_RETURN_IF_FAILED(RunOperator<decltype(&aclnnInplaceFillScalarGetWorkspaceSize)>(
        call, "aclnnInplaceFillScalar", own->Whole(call.outputs, 0), value));
  }
  return ClearPadding(call);
}

aclError FillWithNumber(const NamedCall& call, float number) {
  ACLTAPE_RETURN_IF_FAILED(CheckCounts(call, 1, 1));
  ACLTAPE_RETURN_IF_FAILED(CheckOutput(call, 0, "the output"));
  OperatorArguments own;
  return FillOutput(call, own.Float(number), &own);
}

aclError FillZeros(const NamedCall& call) { return FillWithNumber(call, 0); }
aclError FillOnes(const NamedCall& call) { return FillWithNumber(call, 1); }
aclError FillAttribute(const NamedCall& call) {
  return FillWithNumber(call, static_cast<float>(RealOf(call, "value", 0)));
}

// (dims, value): torch_npu gives the dims of a scalar as [1].
aclError FillWithInput(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckCounts(call, 2, 1));
  ACLTAPE_RETURN_IF_FAILED(CheckOutput(call, 0, "the output"));
  std::vector<int64_t> dims;
  ACLTAPE_RETURN_IF_FAILED(ReadIntegers(call, 0, "dims", &dims));
  const bool scalar = call.outputs.Shape(0).empty() && dims == std::vector<int64_t>{1};
  if (!scalar) ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, dims));
  OperatorArguments own;
  if (OnHost(call.inputs, 1) || !call.inputs.descs[1]->constant.empty()) {
    const aclDataType type = call.inputs.descs[1]->type;
    const char* value = nullptr;
    ACLTAPE_RETURN_IF_FAILED(ReadBytes(call, 1, "value", aclDataTypeSize(type), &value));
    return FillOutput(call, own.Scalar(type, value), &own);
  }
  ACLTAPE_RETURN_IF_FAILED(CheckInput(call, 1, "value"));
  if (ElementsOf(call.outputs.Shape(0)) > 0) {
    ACLTAPE_RETURN_IF_FAILED(RunOperator<decltype(&aclnnInplaceFillTensorGetWorkspaceSize)>(
        call, "aclnnInplaceFillTensor", own.Whole(call.outputs, 0), own.Whole(call.inputs, 1)));
  }
  return ClearPadding(call);
}

// `on` is the position of the value of the element that an index names; the next input is that of
// all others.
aclError RunOneHot(const NamedCall& call, int64_t depth, int on) {
  ACLTAPE_RETURN_IF_FAILED(CheckCounts(call, on + 2, 1));
  ACLTAPE_RETURN_IF_FAILED(CheckInput(call, 0, "the tensor of indices"));
  ACLTAPE_RETURN_IF_FAILED(CheckOutput(call, 0, "the output"));
  const auto rank = static_cast<int64_t>(call.inputs.Shape(0).size());
  const int64_t axis = IntegerOf(call, "axis", -1);
  if (depth < 0 || depth > INT32_MAX || axis < -rank - 1 || axis > rank) {
    return Fail(ACL_ERROR_INVALID_PARAM,
                "aclop %s: depth %lld in axis %lld is no dim of a result of %lld dims", call.name,
                static_cast<long long>(depth), static_cast<long long>(axis),
                static_cast<long long>(rank + 1));
  }
  std::vector<int64_t> shape = call.inputs.Shape(0);
  shape.insert(shape.begin() + (axis < 0 ? axis + rank + 1 : axis), depth);
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, shape));
  if (ElementsOf(shape) == 0) return ClearPadding(call);
  NamedScratch scratch(call.stream);
  OperatorArguments own;
  aclTensor *on_value = nullptr, *off_value = nullptr;
  ACLTAPE_RETURN_IF_FAILED(InputOnDevice(call, on, "on_value", &scratch, &own, &on_value));
  ACLTAPE_RETURN_IF_FAILED(InputOnDevice(call, on + 1, "off_value", &scratch, &own, &off_value));
  ACLTAPE_RETURN_IF_FAILED(RunOperator<decltype(&aclnnOneHotGetWorkspaceSize)>(
      call, "aclnnOneHot", own.Whole(call.inputs, 0), static_cast<int>(depth), on_value, off_value,
      axis, own.Dense(call.outputs, 0, shape)));
  return ClearPadding(call);
}

// (x, on_value, off_value), and the depth as an attribute.
aclError OneHotOfAttribute(const NamedCall& call) {
  return RunOneHot(call, IntegerOf(call, "depth", -1), 1);
}

// (x, depth, on_value, off_value)
aclError OneHotOfInput(const NamedCall& call) {
  std::vector<int64_t> depth;
  ACLTAPE_RETURN_IF_FAILED(ReadIntegers(call, 1, "depth", &depth));
  return RunOneHot(call, depth.size() == 1 ? depth[0] : -1, 2);
}

constexpr NamedOperator kFills[] = {
    {"Fill", FillWithInput}, {"Fills", FillAttribute},  {"ZerosLike", FillZeros},
    {"OnesLike", FillOnes},  {"OneHot", OneHotOfInput}, {"OneHotD", OneHotOfAttribute},
};

}  // namespace

NamedTable FillsByName() { return kFills; }

}  // namespace acltape::device
