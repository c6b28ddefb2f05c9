// The tensors of an operator call in a script, and what the operator does to each of them.
#pragma once

#include <cstddef>
#include <vector>

#include "replayer/engine/script.h"

namespace acltape::replayer {

struct ScriptOperand {
  const analyzer::lowering::LoweredTensor* tensor = nullptr;  // owned by the call
  size_t argument = 0;                                        // index in Invocation::arguments
  size_t element = 0;                                         // index in a tensor list
  bool read = false;
  bool write = false;
};

// The tensors that are present and not empty, in order of arguments. Directions are those of the
// operator table. Arguments that the table does not know count as read and written.
std::vector<ScriptOperand> OperandsOf(const ScriptCall& call);

}  // namespace acltape::replayer
