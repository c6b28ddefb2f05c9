// A tensor and a part of two others, element by element, by the operator's name.
#include "aclnnop/aclnn_lerp_tensor.h"
#include "runtime/device/by_name/arguments.h"
#include "runtime/device/by_name/arithmetic.h"
#include "runtime/device/by_name/table.h"

namespace acltape::device {
namespace {

using Value = NamedArithmetic::Value;

// (x, a, b, value): x and value times what `combine` makes of a and b. The value may lie in the
// memory of the host or of the device.
template <typename Combine>
aclError AddCombined(const NamedCall& call, Combine combine) {
  ACLTAPE_RETURN_IF_FAILED(CheckCounts(call, 4, 1));
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, 3, 1));
  const bool on_host = OnHost(call.inputs, 3);
  double number = 1;
  if (on_host) {
    ACLTAPE_RETURN_IF_FAILED(ReadNumber(call, 3, "value", &number));
  } else {
    ACLTAPE_RETURN_IF_FAILED(CheckInput(call, 3, "value"));
  }
  const aclDataType type = call.outputs.descs[0]->type;
  bool floats = type == ACL_FLOAT || type == ACL_FLOAT16 || type == ACL_BF16;
  for (int i = 0; i < 3; ++i) floats = floats && call.inputs.descs[i]->type == type;
  if (!floats || ElementsOf(call.inputs.Shape(3)) != 1) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                "aclop %s: the output has the type %d, and value the shape %s; the soft device "
                "takes one type of floats for all tensors, and one value",
                call.name, static_cast<int>(type), ShapeText(call.inputs.Shape(3)).c_str());
  }
  NamedArithmetic in(call);
  const auto input = [&](int i) {
    return in.Read(i, call.inputs.Shape(i), RowMajorStrides(call.inputs.Shape(i)));
  };
  const Value both = combine(in, input(1), input(2));
  const Value part = on_host ? in.Times(both, number) : in.Multiply(both, in.Read(3, {}, {}));
  const Value sum = in.Add(input(0), part);
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, sum.shape));
  in.Write(sum, 0, RowMajorStrides(sum.shape));
  ACLTAPE_RETURN_IF_FAILED(in.status());
  return ClearPadding(call);
}

aclError AddProduct(const NamedCall& call) {
  return AddCombined(
      call, [](NamedArithmetic& in, const Value& a, const Value& b) { return in.Multiply(a, b); });
}

aclError AddQuotient(const NamedCall& call) {
  return AddCombined(
      call, [](NamedArithmetic& in, const Value& a, const Value& b) { return in.Divide(a, b); });
}

// (start, end, weight): a place between two tensors.
aclError GoBetween(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckCounts(call, 3, 1));
  ACLTAPE_RETURN_IF_FAILED(CheckInput(call, 0, "start"));
  ACLTAPE_RETURN_IF_FAILED(CheckInput(call, 1, "end"));
  ACLTAPE_RETURN_IF_FAILED(CheckOutput(call, 0, "the output"));
  for (int i = 0; i < 3; ++i) {
    ACLTAPE_RETURN_IF_FAILED(
        CheckSameType(call, call.inputs.descs[i]->type, call.outputs.descs[0]->type));
  }
  NamedScratch scratch(call.stream);
  OperatorArguments own;
  aclTensor* weight = nullptr;
  ACLTAPE_RETURN_IF_FAILED(InputOnDevice(call, 2, "weight", &scratch, &own, &weight));
  if (ElementsOf(call.outputs.Shape(0)) == 0) return ClearPadding(call);
  ACLTAPE_RETURN_IF_FAILED(RunOperator<decltype(&aclnnLerpGetWorkspaceSize)>(
      call, "aclnnLerp", own.Whole(call.inputs, 0), own.Whole(call.inputs, 1), weight,
      own.Whole(call.outputs, 0)));
  return ClearPadding(call);
}

constexpr NamedOperator kMultiplyAdds[] = {
    {"Addcmul", AddProduct},
    {"Addcdiv", AddQuotient},
    {"Lerp", GoBetween},
};

}  // namespace

NamedTable MultiplyAddsByName() { return kMultiplyAdds; }

}  // namespace acltape::device
