// Dropout with a mask that is given, by the operator's name: a bit for each element, or a byte.
#include "aclnnop/aclnn_dropout_do_mask.h"
#include "runtime/device/by_name/arguments.h"
#include "runtime/device/by_name/arithmetic.h"
#include "runtime/device/by_name/table.h"

namespace acltape::device {
namespace {

using Value = NamedArithmetic::Value;

// (x, mask, keep_prob) for a mask of `bits` of each element.
aclError ReadMasked(const NamedCall& call, size_t bits, double* keep) {
  ACLTAPE_RETURN_IF_FAILED(CheckCounts(call, 3, 1));
  ACLTAPE_RETURN_IF_FAILED(CheckInput(call, 0, "x"));
  ACLTAPE_RETURN_IF_FAILED(CheckInput(call, 1, "the mask"));
  ACLTAPE_RETURN_IF_FAILED(CheckOutput(call, 0, "the output"));
  ACLTAPE_RETURN_IF_FAILED(ReadNumber(call, 2, "keep_prob", keep));
  const aclDataType type = call.inputs.descs[0]->type;
  ACLTAPE_RETURN_IF_FAILED(CheckSameType(call, type, call.outputs.descs[0]->type));
  ACLTAPE_RETURN_IF_FAILED(CheckShape(call, 0, call.inputs.Shape(0)));
  const size_t needed = (ElementsOf(call.inputs.Shape(0)) * bits + 7) / 8;
  if ((type == ACL_FLOAT || type == ACL_FLOAT16 || type == ACL_BF16) && *keep >= 0 && *keep <= 1 &&
      call.inputs.descs[1]->type == ACL_UINT8 && ElementsOf(call.inputs.Shape(1)) >= needed) {
    return ACL_SUCCESS;
  }
  return Fail(ACL_ERROR_INVALID_PARAM,
              "aclop %s: x has the type %d and the shape %s, the mask the type %d and the shape "
              "%s, and keep_prob is %g; expected floats, %zu elements of uint8, and a number from "
              "0 to 1",
              call.name, static_cast<int>(type), ShapeText(call.inputs.Shape(0)).c_str(),
              static_cast<int>(call.inputs.descs[1]->type), ShapeText(call.inputs.Shape(1)).c_str(),
              *keep, needed);
}

aclError DropByBits(const NamedCall& call) {
  double keep = 0;
  ACLTAPE_RETURN_IF_FAILED(ReadMasked(call, 1, &keep));
  const std::vector<int64_t>& shape = call.inputs.Shape(0);
  if (ElementsOf(shape) > 0) {
    OperatorArguments own;
    ACLTAPE_RETURN_IF_FAILED(RunOperator<decltype(&aclnnDropoutDoMaskGetWorkspaceSize)>(
        call, "aclnnDropoutDoMask", own.Dense(call.inputs, 0, shape), own.Whole(call.inputs, 1),
        1 - keep, own.Dense(call.outputs, 0, shape)));
  }
  return ClearPadding(call);
}

// With a probability of 0 nothing is kept.
aclError DropByBytes(const NamedCall& call) {
  double keep = 0;
  ACLTAPE_RETURN_IF_FAILED(ReadMasked(call, 8, &keep));
  const std::vector<int64_t>& shape = call.inputs.Shape(0);
  if (ElementsOf(shape) == 0) return ClearPadding(call);
  const std::vector<int64_t> strides = RowMajorStrides(shape);
  NamedArithmetic in(call);
  const Value kept = in.Positive(in.Read(1, shape, strides));
  const Value x = in.Read(0, shape, strides), none = in.Filled(shape, 0);
  // An element that is dropped is 0, also where it is infinite or no number.
  in.Write(keep > 0 ? in.Where(kept, in.Over(x, keep), none) : none, 0, strides);
  ACLTAPE_RETURN_IF_FAILED(in.status());
  return ClearPadding(call);
}

constexpr NamedOperator kDropout[] = {
    {"DropOutDoMask", DropByBits},
    {"DropOutDoMaskV3", DropByBytes},
};

}  // namespace

NamedTable DropoutByName() { return kDropout; }

}  // namespace acltape::device
