// The values that two programs read on the host, one after the other. Alignment by dataflow pairs
// equal work wherever it stands, so that two programs which read other values in turn may be
// aligned without a difference: one of them did some work more before its first read.
#pragma once

#include "analyzer/diff/diff.h"
#include "analyzer/diff/flow.h"
#include "analyzer/diff/rows.h"
#include "analyzer/diff/values.h"

namespace acltape::analyzer::diff {

// Where both programs read equally often, each in one thread, makes the first read that gave
// another value a difference of its own. Returns the index of its row, -1: none.
int64_t FindOtherHostRead(const Flow& a, const Flow& b, ValueComparer& values, DiffRows& rows);

}  // namespace acltape::analyzer::diff
