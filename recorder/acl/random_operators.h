// The operators that draw random numbers. A leaf of PyTorch whose kernel calls such an operator has
// random values even if its schema does not say so: attention of an adapter drops weights.
#pragma once

#include <cstdint>

#include "acl/invoke/operator_table.h"
#include "meaning/acl_operators.h"

namespace acltape::acl_agent {

// True if the operator draws random numbers with some arguments.
inline bool MayDrawNumbers(const acl::OperatorInfo& info) {
  return meaning::AclOperatorOf(info.name).randomness != meaning::Randomness::kNone;
}

// True if the operator draws random numbers when it has these arguments, which are those of its
// first phase in the order of the table.
inline bool DrawsNumbers(const acl::OperatorInfo& info, const acl::ArgValue* values) {
  const meaning::AclOperator facts = meaning::AclOperatorOf(info.name);
  if (facts.randomness == meaning::Randomness::kNone) return false;
  if (facts.random_if.always()) return true;
  for (uint32_t i = 0; i < info.arg_count; ++i) {
    if (info.args[i].name != facts.random_if.argument) continue;
    return facts.random_if.test == meaning::Condition::Test::kTrue ? values[i].integer != 0
                                                                   : values[i].real != 1;
  }
  return false;
}

}  // namespace acltape::acl_agent
