// The operators that draw random numbers. A leaf of PyTorch whose kernel calls such an operator has
// random values even if its schema does not say so: attention of an adapter drops weights.
#pragma once

#include <cstdint>

#include "acl/invoke/operator_table.h"
#include "meaning/acl_operators.h"
#include "recorder/acl/argument_flags.h"

namespace acltape::acl_agent {

// True if the operator draws random numbers with some arguments.
inline bool MayDrawNumbers(const acl::OperatorInfo& info) {
  return meaning::AclOperatorOf(info.name).randomness != meaning::Randomness::kNone;
}

// True if the operator draws random numbers when it has these arguments, which are those of its
// first phase in the order of the table.
inline bool DrawsNumbers(const acl::OperatorInfo& info, const acl::ArgValue* values) {
  const meaning::AclOperator facts = meaning::AclOperatorOf(info.name);
  return facts.randomness != meaning::Randomness::kNone && Holds(facts.random_if, info, values);
}

}  // namespace acltape::acl_agent
