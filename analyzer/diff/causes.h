// Compares the results of the rows of a diff and finds where each difference began.
#pragma once

#include "analyzer/diff/rows.h"

namespace acltape::analyzer::diff {

// An operator is to blame if the relative error of its result is more than this many times that of
// its inputs (precision standards, msprobe's "yellow": output error > 10 x input error).
inline constexpr double kAmplification = 10;

// Fills in verdicts and causes of the picked rows. Other rows are compared only if a picked row
// needs them.
void FindCauses(const Flow& a, const Flow& b, const Alignment& alignment, ValueComparer& values,
                DiffRows& rows, const std::function<void(int64_t, int64_t)>& progress);

}  // namespace acltape::analyzer::diff
