// A set of bytes of one buffer, as disjoint half-open ranges.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "storage/trace.h"

namespace acltape::analyzer {

struct ByteRange {
  int64_t first = 0;
  int64_t end = 0;
};

class ByteSet {
 public:
  void Add(int64_t first, int64_t end) {
    if (first >= end) return;
    auto range = ranges_.upper_bound(first);
    if (range != ranges_.begin() && std::prev(range)->second >= first) --range;
    while (range != ranges_.end() && range->first <= end) {
      first = std::min(first, range->first);
      end = std::max(end, range->second);
      range = ranges_.erase(range);
    }
    ranges_.emplace(first, end);
  }
  void Add(const ByteSet& other) {
    for (const auto& [first, end] : other.ranges_) Add(first, end);
  }

  void Remove(int64_t first, int64_t end) {
    if (first >= end) return;
    auto range = ranges_.upper_bound(first);
    if (range != ranges_.begin() && std::prev(range)->second > first) --range;
    while (range != ranges_.end() && range->first < end) {
      const auto [from, to] = *range;
      range = ranges_.erase(range);
      if (from < first) ranges_.emplace(from, first);
      if (end < to) ranges_.emplace(end, to);
    }
  }
  void Remove(const ByteSet& other) {
    for (const auto& [first, end] : other.ranges_) Remove(first, end);
  }

  // The parts of [first, end) that are in the set, in order.
  std::vector<ByteRange> Within(int64_t first, int64_t end) const {
    std::vector<ByteRange> parts;
    auto range = ranges_.upper_bound(first);
    if (range != ranges_.begin()) --range;
    for (; range != ranges_.end() && range->first < end; ++range) {
      const ByteRange part{std::max(first, range->first), std::min(end, range->second)};
      if (part.first < part.end) parts.push_back(part);
    }
    return parts;
  }
  bool Covers(int64_t first, int64_t end) const {
    const std::vector<ByteRange> parts = Within(first, end);
    return first >= end || (parts.size() == 1 && parts[0].first == first && parts[0].end == end);
  }
  bool empty() const { return ranges_.empty(); }

 private:
  std::map<int64_t, int64_t> ranges_;  // first to end
};

// Adds the bytes of the layout's elements without the gaps between them.
void AddElements(const storage::Layout& layout, ByteSet& set);

}  // namespace acltape::analyzer
