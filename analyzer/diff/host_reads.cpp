#include "analyzer/diff/host_reads.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace acltape::analyzer::diff {
namespace {

// The nodes that bring a value to the host, in the order of the program's calls.
std::vector<int32_t> HostReads(const Flow& flow) {
  std::vector<int32_t> reads;
  for (size_t node = 0; node < flow.size(); ++node) {
    const bool of_torch = flow.work->dialect == Dialect::kAten;
    // A copy to pageable memory of the host writes no buffer.
    const bool reads_on_host =
        of_torch ? flow.work->form(flow.nodes[node].call).kind == LeafKind::kHostRead
                 : flow.label(node).writes.empty() && !flow.label(node).reads.empty();
    if (reads_on_host) reads.push_back(static_cast<int32_t>(node));
  }
  std::sort(reads.begin(), reads.end(),
            [&](int32_t x, int32_t y) { return flow.call_id(x) < flow.call_id(y); });
  return reads;
}

// Threads that run side by side read in an order that another run need not have.
bool AreOfOneThread(const Flow& flow, const std::vector<int32_t>& reads) {
  const auto thread_of = [&](int32_t node) {
    return flow.work->calls[static_cast<size_t>(flow.nodes[static_cast<size_t>(node)].call)].thread;
  };
  return std::all_of(reads.begin(), reads.end(),
                     [&](int32_t node) { return thread_of(node) == thread_of(reads.front()); });
}

}  // namespace

int64_t FindOtherHostRead(const Flow& a, const Flow& b, ValueComparer& values, DiffRows& rows) {
  const std::vector<int32_t> of_a = HostReads(a), of_b = HostReads(b);
  if (of_a.size() != of_b.size() || !AreOfOneThread(a, of_a) || !AreOfOneThread(b, of_b)) {
    return -1;
  }
  for (size_t i = 0; i < of_a.size(); ++i) {
    const int32_t index = rows.row_of[0][of_a[i]];
    if (index < 0 || index == rows.row_of[1][of_b[i]]) continue;
    ValueDifference difference = values.Compare(of_a[i], of_b[i], storage::DType::kUndefined);
    if (difference.verdict != DiffVerdict::kDifferent) continue;
    DiffRow& row = rows.rows[static_cast<size_t>(index)];
    if (!row.picked) continue;
    row.cause = DiffCause::kStructural;
    row.verdict = DiffVerdict::kDifferent;
    row.output = difference.name;
    row.reason =
        fmt::format("read {} of {} on the host gives another value than that of B (call {}): {}",
                    i + 1, of_a.size(), b.call_id(of_b[i]), difference.reason);
    row.error = difference.error;
    row.metrics = std::move(difference.metrics);
    return index;
  }
  return -1;
}

}  // namespace acltape::analyzer::diff
