#include "replayer/device/memory_plan.h"

#include <algorithm>
#include <numeric>

namespace acltape::replayer {

int64_t AlignUp(int64_t bytes) {
  return (bytes + kDeviceAlignment - 1) / kDeviceAlignment * kDeviceAlignment;
}

int64_t PlanMemory(std::vector<Life>& lives) {
  // With more buffers than this, the quadratic search would cost more than the saved memory is
  // worth.
  constexpr size_t kSearchLimit = 20000;
  std::vector<size_t> order(lives.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return lives[a].bytes > lives[b].bytes; });
  int64_t arena = 0;
  std::vector<const Life*> placed;  // by offset
  for (const size_t i : order) {
    Life& life = lives[i];
    const int64_t bytes = AlignUp(std::max<int64_t>(life.bytes, 1));
    int64_t offset = 0;
    if (lives.size() > kSearchLimit) {
      offset = arena;
    } else {
      for (const Life* other : placed) {
        if (other->last < life.first || life.last < other->first) continue;
        if (offset + bytes <= other->offset) break;
        offset = std::max(offset, other->offset + AlignUp(std::max<int64_t>(other->bytes, 1)));
      }
    }
    life.offset = offset;
    const auto place =
        std::upper_bound(placed.begin(), placed.end(), &life,
                         [](const Life* a, const Life* b) { return a->offset < b->offset; });
    placed.insert(place, &life);
    arena = std::max(arena, offset + bytes);
  }
  return arena;
}

}  // namespace acltape::replayer
