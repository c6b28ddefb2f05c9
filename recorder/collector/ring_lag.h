// How large the ring of a thread would have had to be, so that the thread never waited for room.
#pragma once

#include <cstdint>

namespace acltape::collector {

// Follows the looks at one ring. Each look empties it. Where the thread had filled it before, it
// waited for the look. In that time it would have written on as fast as before: a larger ring would
// have held so much more. Such gaps between looks add up until a look finds the ring half empty:
// then what lay in a larger ring would have been taken too.
class RingLag {
 public:
  explicit RingLag(uint64_t ring_bytes) : ring_bytes_(ring_bytes) {}

  // A look that took `bytes`. `waited_ns` is all the time that the thread has waited so far; it is
  // told late, so that a wait belongs to the gap before the last look.
  void Look(int64_t now_ns, uint64_t bytes, uint64_t waited_ns);

  // In bytes; 0: the thread did not wait, or it is not known what it would have written.
  uint64_t needed() const { return needed_; }
  // The longest time between two looks in which the thread waited; 0: as above.
  int64_t longest_gap_ns() const { return longest_gap_ns_; }

 private:
  uint64_t ring_bytes_;
  int64_t last_look_ns_ = 0;  // 0: none so far
  int64_t gap_ns_ = 0;        // before the last look, 0: not known
  uint64_t taken_ = 0;        // by the last look
  uint64_t waited_ns_ = 0;
  double ahead_ = 0;  // bytes that a larger ring would hold
  uint64_t needed_ = 0;
  int64_t longest_gap_ns_ = 0;
};

}  // namespace acltape::collector
