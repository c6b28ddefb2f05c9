// Places blocks with known lives in one arena, in the order in which a program asks for them: best
// fit, as a caching allocator does (the smallest hole that is large enough, the lowest of equals).
// The replayer, which knows all lives before it starts, packs tighter (replayer/memory_plan.h).
#pragma once

#include <cstdint>
#include <vector>

namespace acltape::analyzer {

struct ArenaBlock {
  int64_t bytes = 0;
  int64_t first = 0;  // first and last moment of use, inclusive
  int64_t last = 0;
  int64_t offset = 0;  // set by PlaceBlocks
};

// Sets the offsets. Sizes are rounded up to a multiple of `alignment`. Returns the size of the
// arena in bytes. Near-linear as long as holes are few.
int64_t PlaceBlocks(std::vector<ArenaBlock>& blocks, int64_t alignment);

// The greatest number of bytes that are in use at one moment: no arena is smaller.
int64_t PeakBytes(const std::vector<ArenaBlock>& blocks, int64_t alignment);

}  // namespace acltape::analyzer
