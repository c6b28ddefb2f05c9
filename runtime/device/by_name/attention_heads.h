// Steps that the operators of attention by name share: heads apart and side by side, and checks of
// tensors whose shapes and types the operator knows.
#pragma once

#include <vector>

#include "runtime/device/by_name/arithmetic.h"

namespace acltape::device {

// A tensor of a call as the operator expects it.
struct ExpectedTensor {
  int position;
  std::vector<int64_t> shape;
  aclDataType type = ACL_FLOAT16;
};

// Refuses tensors that are not as expected.
aclError CheckExpectedInputs(const NamedCall& call, const std::vector<ExpectedTensor>& tensors);
aclError CheckExpectedOutputs(const NamedCall& call, const std::vector<ExpectedTensor>& tensors);

// An input of its whole shape, in memory of its own.
NamedArithmetic::Value WholeInput(NamedArithmetic& in, const NamedCall& call, int i);
// Writes all elements of an output.
void WholeOutput(NamedArithmetic& in, const NamedCall& call, int i,
                 const NamedArithmetic::Value& value);

// A value in memory of its own with its last two dims exchanged.
NamedArithmetic::Value Transposed(NamedArithmetic& in, const NamedArithmetic::Value& matrices);
// [batch * length, heads * width] to [batch, heads, length, width], and back.
NamedArithmetic::Value HeadsApart(NamedArithmetic& in, const NamedArithmetic::Value& rows,
                                  int64_t batch, int64_t heads);
NamedArithmetic::Value HeadsTogether(NamedArithmetic& in, const NamedArithmetic::Value& apart);

}  // namespace acltape::device
