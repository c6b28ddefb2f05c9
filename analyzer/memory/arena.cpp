#include "analyzer/memory/arena.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <queue>

namespace acltape::analyzer::memory {
namespace {

int64_t RoundUp(int64_t bytes, int64_t alignment) {
  return (std::max<int64_t>(bytes, 1) + alignment - 1) / alignment * alignment;
}

class Holes {
 public:
  // Takes the best hole for a block and returns its offset. Grows the arena if no hole is large
  // enough.
  int64_t Take(int64_t bytes) {
    auto best = holes_.end();
    for (auto hole = holes_.begin(); hole != holes_.end(); ++hole) {
      if (hole->second >= bytes && (best == holes_.end() || hole->second < best->second)) {
        best = hole;
      }
    }
    if (best == holes_.end()) {
      const int64_t offset = LastHole();
      holes_.erase(offset);
      end_ = offset + bytes;
      return offset;
    }
    const auto [offset, size] = *best;
    holes_.erase(best);
    if (size > bytes) holes_.emplace(offset + bytes, size - bytes);
    return offset;
  }

  void Give(int64_t offset, int64_t bytes) {
    auto next = holes_.lower_bound(offset);
    if (next != holes_.end() && offset + bytes == next->first) {
      bytes += next->second;
      next = holes_.erase(next);
    }
    if (next != holes_.begin()) {
      const auto before = std::prev(next);
      if (before->first + before->second == offset) {
        before->second += bytes;
        return;
      }
    }
    holes_.emplace_hint(next, offset, bytes);
  }

  int64_t end() const { return end_; }

 private:
  // The offset at which the free bytes at the end of the arena begin.
  int64_t LastHole() const {
    if (holes_.empty()) return end_;
    const auto last = std::prev(holes_.end());
    return last->first + last->second == end_ ? last->first : end_;
  }

  std::map<int64_t, int64_t> holes_;  // offset to size; blocks lie between holes
  int64_t end_ = 0;
};

}  // namespace

int64_t PlaceBlocks(std::vector<ArenaBlock>& blocks, int64_t alignment) {
  std::vector<size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return blocks[a].first < blocks[b].first; });
  const auto ends_later = [&](size_t a, size_t b) { return blocks[a].last > blocks[b].last; };
  std::priority_queue<size_t, std::vector<size_t>, decltype(ends_later)> alive(ends_later);
  Holes holes;
  for (const size_t index : order) {
    while (!alive.empty() && blocks[alive.top()].last < blocks[index].first) {
      holes.Give(blocks[alive.top()].offset, RoundUp(blocks[alive.top()].bytes, alignment));
      alive.pop();
    }
    blocks[index].offset = holes.Take(RoundUp(blocks[index].bytes, alignment));
    alive.push(index);
  }
  return holes.end();
}

int64_t PeakBytes(const std::vector<ArenaBlock>& blocks, int64_t alignment) {
  std::vector<std::pair<int64_t, int64_t>> changes;  // moment and bytes
  for (const ArenaBlock& block : blocks) {
    changes.emplace_back(block.first, RoundUp(block.bytes, alignment));
    changes.emplace_back(block.last + 1, -RoundUp(block.bytes, alignment));
  }
  std::sort(changes.begin(), changes.end());  // at one moment, ends come first
  int64_t alive = 0;
  int64_t peak = 0;
  for (const auto& [moment, bytes] : changes) peak = std::max(peak, alive += bytes);
  return peak;
}

}  // namespace acltape::analyzer::memory
