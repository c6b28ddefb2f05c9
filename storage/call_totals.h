// Adds up the calls of a trace: what the tables `signature_total`, `thread_total` and `host_gap`
// hold. A recording adds each call as it is written, which costs far less than reading all calls
// again at the end.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "storage/host_gaps.h"

namespace acltape::storage {

// The part that a call adds to the totals. Times are relative, as call_row has them.
struct CountedCall {
  int64_t call_id = 0;
  int64_t signature_id = 0;
  int64_t thread_id = 0;
  bool leaf = false;
  int64_t begin_ns = 0;
  int64_t duration_ns = 0;
};

class CallTotals {
 public:
  struct OfSignature {
    int64_t calls = 0;
    int64_t first_call = 0;
    int64_t leaves = 0;
    // These count leaves alone and are only set if there are any.
    int64_t total_ns = 0;
    int64_t min_ns = 0;
    int64_t max_ns = 0;
  };
  struct OfThread {
    int64_t calls = 0;
    int64_t leaves = 0;
  };

  // Each call once, in an order that LongestGaps takes.
  void Add(const CountedCall& call);
  // The totals are wrong: for a reason that the caller knows.
  void GiveUp() { gave_up_ = true; }
  // True after GiveUp, and when a call had times that cannot be added up.
  bool gave_up() const { return gave_up_; }

  int64_t calls() const { return calls_; }
  const std::unordered_map<int64_t, OfSignature>& signatures() const { return signatures_; }
  const std::unordered_map<int64_t, OfThread>& threads() const { return threads_; }
  LongestGaps& gaps() { return gaps_; }

 private:
  bool gave_up_ = false;
  int64_t calls_ = 0;
  std::unordered_map<int64_t, OfSignature> signatures_;
  std::unordered_map<int64_t, OfThread> threads_;
  LongestGaps gaps_;
};

}  // namespace acltape::storage
