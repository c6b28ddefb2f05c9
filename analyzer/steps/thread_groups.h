// Threads that work together. Two threads do if both use a stream, or if both use a buffer that one
// of them writes. What a thread did before the other one began is left out: a program sets up the
// weights that its threads read. Threads of different groups run programs of their own side by
// side, such as requests that each have their streams and memory. In which order their calls are
// recorded is chance, so what repeats in that order is nobody's step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "analyzer/calls/work.h"

namespace acltape::analyzer {

class ThreadGroups {
 public:
  // The time is linear in the calls and their accesses; the calls of one thread are only counted.
  explicit ThreadGroups(const Work& work);

  size_t size() const { return size_; }
  // The group of a thread of the work: 0 <= group < size().
  size_t Of(int32_t thread) const { return groups_.at(thread); }

 private:
  std::unordered_map<int32_t, size_t> groups_;
  size_t size_ = 0;
};

}  // namespace acltape::analyzer
