// An arena is one block of memory that is planned as a whole. Places blocks with known lives in it,
// in the order in which a program asks for them. It uses best fit as a caching allocator does: the
// smallest hole that is large enough, and the lowest of equal holes. The replayer knows all lives
// before it starts and packs tighter (replayer/device/memory_plan.h).
#pragma once

#include <cstdint>
#include <vector>

namespace acltape::analyzer::memory {

struct ArenaBlock {
  int64_t bytes = 0;
  int64_t first = 0;  // first and last moment of use, inclusive
  int64_t last = 0;
  int64_t offset = 0;  // set by PlaceBlocks
};

// Sets the offsets. Sizes are rounded up to a multiple of `alignment`. Returns the size of the
// arena in bytes. The time is near-linear as long as there are few holes.
int64_t PlaceBlocks(std::vector<ArenaBlock>& blocks, int64_t alignment);

// The greatest number of bytes in use at one moment. No arena can be smaller.
int64_t PeakBytes(const std::vector<ArenaBlock>& blocks, int64_t alignment);

}  // namespace acltape::analyzer::memory
