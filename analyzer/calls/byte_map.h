// A fact about each byte of a buffer, or of an address space, as disjoint half-open ranges.
#pragma once

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>

namespace acltape::analyzer {

template <typename Fact>
class ByteMap {
 public:
  void Set(int64_t first, int64_t end, const Fact& fact) {
    if (first >= end) return;
    Remove(first, end);
    ranges_.emplace(first, Part{end, fact});
  }

  // Nothing is known of these bytes any more.
  void Remove(int64_t first, int64_t end) {
    if (first >= end) return;
    auto range = ranges_.upper_bound(first);
    if (range != ranges_.begin() && std::prev(range)->second.end > first) --range;
    while (range != ranges_.end() && range->first < end) {
      const int64_t from = range->first;
      const Part part = range->second;
      range = ranges_.erase(range);
      if (from < first) ranges_.emplace(from, Part{first, part.fact});
      if (end < part.end) range = ranges_.emplace(end, part).first;
    }
  }
  bool empty() const { return ranges_.empty(); }

  // Visits the parts of [first, end) of which a fact is known, in order: from, to, fact.
  template <typename Visit>
  void Within(int64_t first, int64_t end, Visit&& visit) const {
    auto range = ranges_.upper_bound(first);
    if (range != ranges_.begin()) --range;
    for (; range != ranges_.end() && range->first < end; ++range) {
      const int64_t from = std::max(first, range->first);
      const int64_t to = std::min(end, range->second.end);
      if (from < to) visit(from, to, range->second.fact);
    }
  }

 private:
  struct Part {
    int64_t end = 0;
    Fact fact;
  };
  std::map<int64_t, Part> ranges_;
};

}  // namespace acltape::analyzer
