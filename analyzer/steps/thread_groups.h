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

  // How many of several groups do work of the device; 0 if there is one group.
  size_t working() const { return working_; }
  // True of the threads of the group that does more than half of the work, and of all threads if
  // there is one group.
  bool DoesMost(int32_t thread) const { return size_ < 2 || groups_.at(thread) == most_; }
  // True if there are groups and none of them does more than half of the work. What depends on the
  // order of the calls is chance then.
  bool SideBySide() const { return size_ > 1 && most_ == size_; }

 private:
  std::unordered_map<int32_t, size_t> groups_;
  size_t size_ = 0;
  size_t working_ = 0;
  size_t most_ = 0;  // the group that does more than half of the work; size_: none
};

}  // namespace acltape::analyzer
