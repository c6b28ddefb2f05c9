#include "analyzer/program/queue_operators.h"

namespace acltape::analyzer {

void QueueOperators::AddLeaf(const storage::Call& leaf) {
  leaves_.insert(leaf.call_id);
  leaf_threads_.insert(leaf.thread_id);
}

void QueueOperators::AddCall(const storage::Call& call) {
  Queue& queue = queues_[call.thread_id];
  if (call.parent_id == 0) {
    if (queue.leaf != 0) queue.calls.push_back(call.call_id);
    return;
  }
  const int64_t leaf = leaves_.contains(call.parent_id) ? call.parent_id : 0;
  if (leaf != 0 && leaf == queue.leaf) {
    for (const int64_t between : queue.calls) queue.matches.push_back({between, leaf});
  }
  queue.leaf = leaf;
  queue.calls.clear();
}

std::vector<QueueOperators::Match> QueueOperators::Finish() {
  std::vector<Match> matches;
  for (const auto& [thread, queue] : queues_) {
    if (leaf_threads_.contains(thread)) continue;
    matches.insert(matches.end(), queue.matches.begin(), queue.matches.end());
  }
  return matches;
}

}  // namespace acltape::analyzer
