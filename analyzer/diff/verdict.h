// The answer of a diff in words. Every command and the report page take it from here.
#pragma once

#include <string>

#include "analyzer/diff/diff.h"

namespace acltape::analyzer::diff {

// "different: 2 places with a cause of their own", "equal: all 40 compared results, of 52 aligned
// calls", "not known: ...".
std::string VerdictOf(const DiffReport& report);

// These words name DiffReport::coverage in tables.
inline constexpr char kCoverageWords[] = "leaves of A that compared results tell of";

}  // namespace acltape::analyzer::diff
