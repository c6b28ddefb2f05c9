// How much of A a diff compared: a compared result tells of the call that wrote it, and of each
// call whose result it was made of.
#pragma once

#include <vector>

#include "analyzer/calls/coverage.h"
#include "analyzer/diff/diff.h"
#include "analyzer/diff/flow.h"

namespace acltape::analyzer::diff {

// Counts the operators among the picked calls of A.
// Fills in `coverage`, and `counts.without_counterpart`.
void MeasureCoverage(const Flow& a, DiffReport& report);

}  // namespace acltape::analyzer::diff
