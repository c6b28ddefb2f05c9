// How many rows each sequence of an attention operator has, as its arrays of lengths say.
#pragma once

#include <vector>

#include "runtime/opapi/engine/call.h"

namespace acltape::opapi {

using Lengths = std::vector<int64_t>;

// The lengths of sequences that follow each other in `whole` rows: argument `i` has the row after
// each. Entries of 0 after the others are sequences without rows.
Lengths PackedLengths(const Call& call, int i, int64_t whole);

// The lengths of one sequence in each batch: argument `i` has one for each, or one for all; `whole`
// has the rows of each batch, which count where the argument is absent or `i` is negative. Entries
// after those of the batches are not looked at.
Lengths BatchLengths(const Call& call, int i, const Lengths& whole);

}  // namespace acltape::opapi
