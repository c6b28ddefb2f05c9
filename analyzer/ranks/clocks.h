// One clock for traces of several machines. A collective in which each rank needs data of all is a
// meeting: on no rank has it ended before it has begun on the last one. So each meeting bounds how
// far two clocks are apart, from both sides.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "storage/call_numbers.h"

namespace acltape::analyzer::ranks {

// For each trace what is added to its times, so that they are those of the first one. Traces of one
// machine, since it was started, have the same clock. For another machine the bounds of all
// meetings are taken together, and the middle between them, with half of their distance as the
// error. Where two machines have no meeting in common, their wall clocks are taken, and the error
// is not known (-1).
//
// When a collective had ended is what the device's clock says (record --device-times), else what a
// host knows that has waited for it.
std::vector<storage::MergeSource> AlignClocks(const std::vector<const storage::Reader*>& traces);

// One trace's own part in a meeting, as far as it knows.
struct Moment {
  int64_t from_ns = 0;  // not earlier than this the rank came to the meeting
  int64_t to_ns = 0;    // not later than this the meeting had ended there
};
struct Distance {
  int64_t shift_ns = 0;
  int64_t error_ns = 0;
  bool consistent = true;  // false: no shift suits all meetings; the clocks do not run alike
};
// How far the clock of `b` is to be shifted to be that of `a`. Both have one moment for each
// meeting; not empty. `a_error_ns` is by how much the times of `a` may be wrong.
Distance DistanceOf(const std::vector<Moment>& a, const std::vector<Moment>& b, int64_t a_error_ns);

}  // namespace acltape::analyzer::ranks
