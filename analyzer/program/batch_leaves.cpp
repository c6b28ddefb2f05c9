#include "analyzer/program/batch_leaves.h"

#include <algorithm>

#include "analyzer/calls/leaf_kind.h"
#include "analyzer/program/queue_collectives.h"

namespace acltape::analyzer {

BatchLeaves::BatchLeaves(const storage::Reader& trace) : trace_(trace), processes_(trace) {
  trace.VisitCalls(/*leaves_only=*/true, [&](const storage::Call& call) {
    const storage::Op& op = trace.GetOp(call.op_id);
    if (call.status != 0 || !IsLeafDialect(op.dialect) || !IsMessage(op.name)) return;
    messages_[processes_.Of(call.thread_id)].push_back(call.call_id);
  });
}

std::vector<int64_t> BatchLeaves::Of(const storage::Call& call) const {
  if (call.parent_id == 0) return {};
  const int64_t messages = MessagesOfBatch(trace_, call);
  const auto found = messages_.find(processes_.Of(call.thread_id));
  if (messages == 0 || found == messages_.end()) return {call.parent_id};
  const auto first = std::ranges::lower_bound(found->second, call.parent_id);
  const auto end = first + std::min<int64_t>(messages, found->second.end() - first);
  return {first, end};
}

}  // namespace acltape::analyzer
