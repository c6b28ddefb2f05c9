#include "storage/call_totals.h"

#include <algorithm>

#include "storage/checked_row.h"

namespace acltape::storage {

void CallTotals::Add(const CountedCall& call) {
  // As the gate has it (row_gate.h): no sum of two overflows.
  if (call.begin_ns < -kMostNs || call.begin_ns > kMostNs || call.duration_ns < 0 ||
      call.duration_ns > kMostNs) {
    gave_up_ = true;
  }
  if (gave_up_) return;
  ++calls_;
  OfThread& thread = threads_[call.thread_id];
  ++thread.calls;
  OfSignature& signature = signatures_[call.signature_id];
  if (signature.calls++ == 0 || call.call_id < signature.first_call) {
    signature.first_call = call.call_id;
  }
  if (!call.leaf) return;
  ++thread.leaves;
  const bool first = signature.leaves++ == 0;
  signature.min_ns = first ? call.duration_ns : std::min(signature.min_ns, call.duration_ns);
  signature.max_ns = std::max(signature.max_ns, call.duration_ns);
  if (__builtin_add_overflow(signature.total_ns, call.duration_ns, &signature.total_ns)) {
    gave_up_ = true;
  }
  gaps_.Add(call.thread_id, call.call_id, call.begin_ns, call.begin_ns + call.duration_ns);
}

}  // namespace acltape::storage
