// Compares the results of the rows of a diff and says of each difference where it began.
#pragma once

#include "analyzer/diff/rows.h"

namespace acltape::analyzer {

// Fills in verdicts and causes of the picked rows; of others only what these need. `external`: by
// side, as Alignment::external_partner.
void FindCauses(const Flow& a, const Flow& b, const Alignment& alignment, ValueComparer& values,
                DiffRows& rows, const std::function<void(int64_t, int64_t)>& progress);

}  // namespace acltape::analyzer
