// Compares the results of the rows of a diff and finds where each difference began.
#pragma once

#include "analyzer/diff/rows.h"

namespace acltape::analyzer::diff {

// Fills in verdicts and causes of the picked rows. Other rows are compared only if a picked row
// needs them.
void FindCauses(const Flow& a, const Flow& b, const Alignment& alignment, ValueComparer& values,
                DiffRows& rows, const std::function<void(int64_t, int64_t)>& progress);

}  // namespace acltape::analyzer::diff
