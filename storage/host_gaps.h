// Finds the longest host gaps: the times between two leaves of a thread in which no leaf of that
// thread ran. The view `host_gaps` (views.cpp) says the same in SQL, for all gaps of a trace.
//
// Leaves of PyTorch enclose leaves of the ACL level where both were recorded. So a gap does not
// begin at the end of the leaf before, but where all leaves before have ended.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

namespace acltape::storage {

struct HostGap {
  int64_t gap_ns = 0;
  int64_t thread_id = 0;
  int64_t after_call = 0;   // among leaves that end when the gap begins, the one that began first
  int64_t before_call = 0;  // among leaves that begin when the gap ends, the one with the least id
};

// Leaves may be added in the order in which they began, or in the order in which they ended, as a
// recording has them: there a leaf comes after those that it encloses, and takes gaps away again.
// Memory is bounded, whatever the number of leaves.
class LongestGaps {
 public:
  static constexpr size_t kMost = 1000;

  // Times in nanoseconds; `end_ns` is not before `begin_ns`.
  void Add(int64_t thread_id, int64_t call_id, int64_t begin_ns, int64_t end_ns);

  // Returns the kMost longest gaps, the longest first, of equal ones that with the least
  // `after_call` first. Returns nothing if a leaf came so late that gaps which it fills were
  // already taken as they were. Ends the search.
  std::optional<std::vector<HostGap>> Finish();

 private:
  // A time in which leaves of a thread ran without a pause.
  struct Stretch {
    int64_t begin_ns;
    int64_t first_call;  // the least id among the leaves that begin first
    int64_t end_ns;
    int64_t last_call;        // among the leaves that end last, the one that began first
    int64_t last_call_begin;  // when it began
  };
  // The stretches of a thread whose gaps may still change, in order of time.
  struct Thread {
    std::vector<Stretch> stretches;
    bool has_taken = false;  // gaps before the first stretch were taken
  };

  static void Join(Stretch& stretch, const Stretch& other);
  void Insert(Thread& thread, const Stretch& leaf);
  // Takes the gaps between the first `count` + 1 stretches and forgets the first `count`.
  void Take(int64_t thread_id, Thread& thread, size_t count);
  void Offer(const HostGap& gap);
  void KeepLongest();

  std::unordered_map<int64_t, Thread> threads_;
  int64_t latest_id_ = 0;
  Thread* latest_ = nullptr;  // threads_ has it; calls of one thread come many at a time
  std::vector<HostGap> gaps_;
  bool has_least_ = false;
  HostGap least_;  // a gap that is not longer cannot be among the longest
  bool too_late_ = false;
};

}  // namespace acltape::storage
