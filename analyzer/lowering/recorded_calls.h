// Lowers a leaf of PyTorch to the calls of operators that were recorded inside of it.
//
// A plug-in brings operators for which no table has a rule. A trace of both levels says what the
// adapter did for each: those calls are repeated, on the leaf's own tensors.
#pragma once

#include <optional>
#include <string>

#include "analyzer/lowering/lowering.h"

namespace acltape::analyzer::lowering {

// The two levels name memory differently, a buffer for each tensor or for each block, so that
// tensors are found by their address: those of the leaf, or temporaries of its calls. The result is
// empty if no call of an operator was recorded inside of the leaf. It is empty too, and `why` says
// so, if there is other work than operators, if a call reads memory that is neither the leaf's nor
// written by an earlier one, or if the calls do not write the leaf's results.
std::optional<Lowering> LowerAsRecorded(const Program& program, const Leaf& leaf, std::string* why);

}  // namespace acltape::analyzer::lowering
