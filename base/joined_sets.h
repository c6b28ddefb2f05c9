// Sets that are joined two at a time, such as threads that work together. Finding a set shortens
// the way of its members to it, so that many questions take nearly constant time each.
#pragma once

#include <cstddef>
#include <numeric>
#include <vector>

namespace acltape::base {

class JoinedSets {
 public:
  // Each of the members 0 to size - 1 is a set of its own.
  explicit JoinedSets(size_t size) : parent_(size) {
    std::iota(parent_.begin(), parent_.end(), size_t{0});
  }
  // The member that stands for the set of `member`.
  size_t Find(size_t member) {
    while (parent_[member] != member) member = parent_[member] = parent_[parent_[member]];
    return member;
  }
  // The sets become one, for which stands what stood for the set of `other`.
  void Join(size_t one, size_t other) { parent_[Find(one)] = Find(other); }

 private:
  std::vector<size_t> parent_;
};

}  // namespace acltape::base
