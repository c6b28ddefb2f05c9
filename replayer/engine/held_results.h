// Results of calls that a trace holds. What a graph computes on its way, for example, nobody could
// keep.
#pragma once

#include <cstddef>
#include <cstdint>

#include "analyzer/program/program.h"

namespace acltape::replayer {

// Returns true if the trace holds the bytes of a result (index in LeafUses::writes). A result
// without elements counts as held.
bool HoldsResult(const analyzer::Program& program, int64_t leaf, size_t write);

}  // namespace acltape::replayer
