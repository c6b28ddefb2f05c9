#include "replayer/engine/script_operands.h"

#include "acl/invoke/operator_table.h"

namespace acltape::replayer {

std::vector<ScriptOperand> OperandsOf(const ScriptCall& call) {
  std::vector<ScriptOperand> operands;
  const acl::OperatorInfo* info = acl::FindOperator(call.invocation.op);
  for (size_t a = 0; a < call.invocation.arguments.size(); ++a) {
    const bool known = info != nullptr && a < info->arg_count;
    const acl::Direction direction = known ? info->args[a].direction : acl::Direction::kInOut;
    const auto& tensors = call.invocation.arguments[a].tensors;
    for (size_t t = 0; t < tensors.size(); ++t) {
      if (!tensors[t].present || tensors[t].layout.ElementCount() == 0) continue;
      operands.push_back(
          {&tensors[t], a, t, direction != acl::Direction::kOut, direction != acl::Direction::kIn});
    }
  }
  return operands;
}

}  // namespace acltape::replayer
