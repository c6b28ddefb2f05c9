// Signs of numbers as bits, by the names of the operators.
#include "aclnnop/aclnn_sign_bits_pack.h"
#include "aclnnop/aclnn_sign_bits_unpack.h"
#include "runtime/device/by_name/arguments.h"
#include "runtime/device/by_name/table.h"

namespace acltape::device {
namespace {

aclError PackSignBits(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, 1, 1));
  OperatorArguments own;
  return RunOperator<decltype(&aclnnSignBitsPackGetWorkspaceSize)>(
      call, "aclnnSignBitsPack", own.Whole(call.inputs, 0), IntegerOf(call, "size", 1),
      own.Whole(call.outputs, 0));
}

aclError UnpackSignBits(const NamedCall& call) {
  ACLTAPE_RETURN_IF_FAILED(CheckGiven(call, 1, 1));
  const aclDataType type = call.outputs.descs[0]->type;
  if (IntegerOf(call, "dtype", type) != type) {
    return Fail(ACL_ERROR_INVALID_PARAM, "aclop %s: dtype is %s, and the output has the type %d",
                call.name, call.Text("dtype").c_str(), static_cast<int>(type));
  }
  OperatorArguments own;
  return RunOperator<decltype(&aclnnSignBitsUnpackGetWorkspaceSize)>(
      call, "aclnnSignBitsUnpack", own.Whole(call.inputs, 0), IntegerOf(call, "size", 1), type,
      own.Whole(call.outputs, 0));
}

constexpr NamedOperator kSignBits[] = {
    {"SignBitsPack", PackSignBits},
    {"SignBitsUnpack", UnpackSignBits},
};

}  // namespace

NamedTable SignBitsByName() { return kSignBits; }

}  // namespace acltape::device
