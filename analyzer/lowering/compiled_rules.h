// The lowering rules as they are applied: parsed, with a rule of its own for each in-place form
// that a row's mark stands for (rules.h).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analyzer/lowering/pattern.h"

namespace acltape::analyzer::lowering {

struct CompiledRule {
  std::string aten;  // as in LoweringRule
  std::string_view when;
  std::vector<CallPattern> calls;
};

// All rules in the order in which they are tried; made once, at first use.
const std::vector<CompiledRule>& CompiledRules();

}  // namespace acltape::analyzer::lowering
