// Absent operands as the library takes them.
#pragma once

#include "runtime/opapi/engine/call.h"

namespace acltape::opapi {

using OptionalTensor = c10::optional<at::Tensor>;

inline OptionalTensor Maybe(const Operand& operand) {
  return operand.defined() ? OptionalTensor(operand()) : OptionalTensor();
}

}  // namespace acltape::opapi
