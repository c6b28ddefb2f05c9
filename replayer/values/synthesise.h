// Makes contents from a seed, in place of recorded ones.
#pragma once

#include <cstdint>
#include <vector>

#include "storage/statistics.h"

namespace acltape::replayer {

// With statistics of this element type, the numbers have the same range, the same mean and the same
// counts of NaN and infinities. Infinities are negative, as in masks. Numbers of an integer type
// are whole, so that indices stay valid. The order of the numbers is not that of the recording.
// Without statistics, floating types get numbers around zero, and other types get zeros, because
// integers may be indices. `statistics` may be null.
std::vector<uint8_t> Synthesise(storage::DType dtype, int64_t bytes, uint64_t seed,
                                const storage::Statistics* statistics);

}  // namespace acltape::replayer
