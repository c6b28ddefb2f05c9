// Gathers the rows at which differences begin, by the place of the program that causes them.
#pragma once

#include <vector>

#include "analyzer/diff/diff.h"

namespace acltape::analyzer::diff {

// True if a difference begins at the row: its cause is `origin`, `structural` or `input`.
bool HasOwnCause(const DiffRow& row);

// Returns one entry for each place, in order of the first row. One line of the program that was
// changed is one place, however often the program passes it: in each step, in each layer, in its
// backward pass too. Rows whose line is not known are places of their own.
std::vector<DiffPropagation> FindPropagation(const DiffReport& report, const storage::Reader& a,
                                             const storage::Reader& b);

}  // namespace acltape::analyzer::diff
