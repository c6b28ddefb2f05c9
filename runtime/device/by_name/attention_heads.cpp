#include "runtime/device/by_name/attention_heads.h"

#include "runtime/device/by_name/arguments.h"

namespace acltape::device {
namespace {

using Value = NamedArithmetic::Value;

aclError CheckExpected(const NamedCall& call, const NamedTensors& tensors, const char* side,
                       const ExpectedTensor& expected) {
  const int i = expected.position;
  if (tensors.Shape(i) == expected.shape && tensors.descs[i]->type == expected.type) {
    return ACL_SUCCESS;
  }
  return Fail(ACL_ERROR_INVALID_PARAM,
              "aclop %s: %s %d has the shape %s and the type %d, expected %s and %d", call.name,
              side, i, ShapeText(tensors.Shape(i)).c_str(),
              static_cast<int>(tensors.descs[i]->type), ShapeText(expected.shape).c_str(),
              static_cast<int>(expected.type));
}

// The distances in memory between elements of rows that are seen as heads.
std::vector<int64_t> StridesOfHeads(const std::vector<int64_t>& apart) {
  const int64_t heads = apart[1], length = apart[2], width = apart[3];
  return {length * heads * width, width, heads * width, 1};
}

}  // namespace

aclError CheckExpectedInputs(const NamedCall& call, const std::vector<ExpectedTensor>& tensors) {
  for (const ExpectedTensor& tensor : tensors) {
    const std::string name = "input " + std::to_string(tensor.position);
    ACLTAPE_RETURN_IF_FAILED(CheckInput(call, tensor.position, name.c_str()));
    ACLTAPE_RETURN_IF_FAILED(CheckExpected(call, call.inputs, "input", tensor));
  }
  return ACL_SUCCESS;
}

aclError CheckExpectedOutputs(const NamedCall& call, const std::vector<ExpectedTensor>& tensors) {
  for (const ExpectedTensor& tensor : tensors) {
    const std::string name = "output " + std::to_string(tensor.position);
    ACLTAPE_RETURN_IF_FAILED(CheckOutput(call, tensor.position, name.c_str()));
    ACLTAPE_RETURN_IF_FAILED(CheckExpected(call, call.outputs, "output", tensor));
  }
  return ACL_SUCCESS;
}

Value WholeInput(NamedArithmetic& in, const NamedCall& call, int i) {
  const std::vector<int64_t>& shape = call.inputs.Shape(i);
  return in.Copied(i, shape, RowMajorStrides(shape));
}

void WholeOutput(NamedArithmetic& in, const NamedCall& call, int i, const Value& value) {
  in.Write(value, i, RowMajorStrides(call.outputs.Shape(i)));
}

Value Transposed(NamedArithmetic& in, const Value& matrices) {
  std::vector<int64_t> shape = matrices.shape, strides = RowMajorStrides(shape);
  const size_t last = shape.size() - 1;
  std::swap(shape[last], shape[last - 1]);
  std::swap(strides[last], strides[last - 1]);
  return in.Part(matrices, shape, strides);
}

Value HeadsApart(NamedArithmetic& in, const Value& rows, int64_t batch, int64_t heads) {
  // A batch of no rows has heads of no length.
  const int64_t length = batch > 0 ? rows.shape[0] / batch : 0;
  Value out = in.Space({batch, heads, length, rows.shape[1] / heads});
  in.Set(out, in.Part(rows, out.shape, StridesOfHeads(out.shape)));
  return out;
}

Value HeadsTogether(NamedArithmetic& in, const Value& apart) {
  const int64_t batch = apart.shape[0], heads = apart.shape[1];
  const int64_t length = apart.shape[2], width = apart.shape[3];
  Value out = in.Space({batch * length, heads * width});
  in.Set(in.Part(out, apart.shape, StridesOfHeads(apart.shape)), apart);
  return out;
}

}  // namespace acltape::device
