// Finds the leaves of work that a thread of the adapter asked for by itself.
//
// Most operators name their leaf, because their first phase is called where the leaf is. Those of
// ATB (vllm's write into its cache, rotary embeddings) are called as a whole by the queue's thread.
// The queue keeps the order in which the program asked: an operator between two calls of one leaf
// is of that leaf. Between calls of two leaves nothing is said.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "storage/trace.h"

namespace acltape::analyzer {

class QueueOperators {
 public:
  struct Match {
    int64_t call = 0;
    int64_t leaf = 0;
  };

  // All leaves of the trace, its operators and its calls that name a leaf come here, in order.
  void AddLeaf(const storage::Call& leaf);
  void AddCall(const storage::Call& call);

  // After all calls: the calls whose leaves are known.
  std::vector<Match> Finish();

 private:
  struct Queue {
    int64_t leaf = 0;            // the leaf of the last call that names one
    std::vector<int64_t> calls;  // the calls since then
    std::vector<Match> matches;
  };

  std::unordered_set<int64_t> leaves_;
  std::unordered_set<int64_t> leaf_threads_;
  std::unordered_map<int64_t, Queue> queues_;  // by thread
};

}  // namespace acltape::analyzer
