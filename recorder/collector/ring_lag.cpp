#include "recorder/collector/ring_lag.h"

#include <algorithm>

namespace acltape::collector {

void RingLag::Look(int64_t now_ns, uint64_t bytes, uint64_t waited_ns) {
  constexpr double kMost = 1e15;  // counts of a damaged slot say anything
  const uint64_t waited = waited_ns - std::min(waited_ns, waited_ns_);
  if (waited > 0 && gap_ns_ > 0) {
    // Where the thread waited nearly all the time, a hundredth of it stands for the filling.
    const double gap = static_cast<double>(gap_ns_);
    const double filling = std::max(gap - static_cast<double>(waited), gap / 100);
    ahead_ = std::min(ahead_ + static_cast<double>(taken_) * (gap - filling) / filling, kMost);
    longest_gap_ns_ = std::max(longest_gap_ns_, gap_ns_);
    needed_ = std::max(needed_, ring_bytes_ + static_cast<uint64_t>(ahead_));
  } else if (taken_ < ring_bytes_ / 2) {
    ahead_ = 0;
  }
  waited_ns_ = waited_ns;
  gap_ns_ = last_look_ns_ == 0 ? 0 : now_ns - last_look_ns_;
  last_look_ns_ = now_ns;
  taken_ = bytes;
}

}  // namespace acltape::collector
