// Contents made up from a seed, in place of recorded ones.
#pragma once

#include <cstdint>
#include <vector>

#include "storage/statistics.h"

namespace acltape::replayer {

// With statistics of this element type: numbers with their range, mean and counts of NaN and
// infinities (which are negative ones, as masks have them), whole where the type is, so that
// indices stay inside of what they index; their order is not that of the recording. Without:
// numbers around zero for floating types, zeros for others, because integers may be indices.
// `statistics` may be null.
std::vector<uint8_t> Synthesise(storage::DType dtype, int64_t bytes, uint64_t seed,
                                const storage::Statistics* statistics);

}  // namespace acltape::replayer
