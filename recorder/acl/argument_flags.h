// Conditions on the numbers among an operator's arguments (meaning/acl_operators.h).
#pragma once

#include <cstdint>

#include "acl/invoke/operator_table.h"
#include "meaning/acl_operators.h"

namespace acltape::acl_agent {

// True if the condition holds for the arguments of a first phase, in the order of the table. An
// argument that is missing fails it.
inline bool Holds(const meaning::Condition& condition, const acl::OperatorInfo& info,
                  const acl::ArgValue* values) {
  if (condition.always()) return true;
  for (uint32_t i = 0; i < info.arg_count; ++i) {
    if (info.args[i].name != condition.argument) continue;
    return condition.test == meaning::Condition::Test::kTrue ? values[i].integer != 0
                                                             : values[i].real != 1;
  }
  return false;
}

// True if the operator writes this output only where a flag asks for it, and the flag does not.
inline bool IsLeftAlone(const acl::OperatorInfo& info, const acl::ArgInfo& output,
                        const acl::ArgValue* values) {
  const meaning::ConditionalOutput* row = meaning::FindConditionalOutput(info.name, output.name);
  return row != nullptr && !Holds(meaning::Condition{row->flag}, info, values);
}

}  // namespace acltape::acl_agent
