// Finds the leaves of work that a thread of the adapter asked for by itself.
//
// Most operators name their leaf, because their first phase is called where the leaf is. Those of
// ATB (vllm's write into its cache, rotary embeddings) are called as a whole by the queue's thread.
// The queue keeps the order in which the program asked: an operator between two calls of one leaf
// is of that leaf. Between calls of two leaves it is of the one leaf, of these two and of those
// that the program called between them, that writes the memory which the operator writes, and no
// earlier call of its own does. Where no leaf does, or several do, nothing is said.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "analyzer/program/device_range.h"
#include "analyzer/program/thread_processes.h"
#include "storage/reader.h"
#include "storage/trace.h"

namespace acltape::analyzer {

class QueueOperators {
 public:
  explicit QueueOperators(const storage::Reader& trace) : trace_(trace), processes_(trace) {}

  struct Match {
    int64_t call = 0;
    int64_t leaf = 0;
  };

  // All leaves of the trace, its operators and its calls that name a leaf come here, in order.
  void AddLeaf(const storage::Call& leaf);
  void AddCall(const storage::Call& call);

  // After all calls: the calls whose leaves are known. It reads the leaves once more if some calls
  // lie between two.
  std::vector<Match> Finish();

 private:
  struct Unnamed {
    int64_t call = 0;
    std::vector<DeviceRange> written;
  };
  // Calls between those of two leaves, the first and the last that may have asked for them.
  struct Between {
    int64_t first_leaf = 0;
    int64_t last_leaf = 0;
    std::vector<Unnamed> calls;
    std::vector<std::vector<int64_t>> writers;  // for each call: leaves that write its memory
    int64_t process = 0;                        // addresses of another one are other memory
  };
  struct Queue {
    int64_t leaf = 0;            // the leaf of the last call that names one
    std::vector<Unnamed> calls;  // the calls since then
    std::vector<Match> matches;
    std::vector<Between> between;
  };

  std::vector<DeviceRange> WrittenBy(const storage::Call& call) const;
  void Close(Queue& queue, int64_t next_leaf);
  void FindWriters(std::vector<Between*>& places) const;

  const storage::Reader& trace_;
  const ThreadProcesses processes_;
  std::unordered_set<int64_t> leaves_;
  std::unordered_set<int64_t> leaf_threads_;
  std::unordered_map<int64_t, Queue> queues_;  // by thread
};

}  // namespace acltape::analyzer
