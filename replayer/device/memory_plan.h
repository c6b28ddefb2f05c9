// Places buffers with known lives in one arena, so that memory is allocated only once.
//
// The algorithm is greedy by size: it places the largest buffers first, each at the lowest offset
// where it does not overlap a placed buffer with an overlapping life (Pisarchyk and Lee, "Efficient
// Memory Management for Deep Neural Net Inference", 2020, section 5.3).
#pragma once

#include <cstdint>
#include <vector>

namespace acltape::replayer {

constexpr int64_t kDeviceAlignment = 64;  // alignment of every planned address, in bytes

struct Life {
  int64_t buffer_id = 0;
  int64_t bytes = 0;
  int64_t first = 0;  // first and last moment of use, inclusive
  int64_t last = 0;
  int64_t offset = 0;  // set by PlanMemory
};

// Sets the offsets and returns the size of the arena in bytes.
int64_t PlanMemory(std::vector<Life>& lives);

int64_t AlignUp(int64_t bytes);

}  // namespace acltape::replayer
