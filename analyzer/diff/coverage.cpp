#include "analyzer/diff/coverage.h"

#include <algorithm>
#include <unordered_set>

namespace acltape::analyzer::diff {
namespace {

// Copies and fills of the ACL level bring what operators read; they are no leaves.
bool Computes(const Flow& flow, size_t node) {
  const WorkForm& form = flow.work->form(flow.nodes[node].call);
  if (form.kind != LeafKind::kKernel) return false;
  if (form.op->dialect != "aten" && form.op->dialect != "aclnn") return false;
  return std::any_of(flow.label(node).writes.begin(), flow.label(node).writes.end(),
                     [](const FormAccess& access) { return access.first_byte < access.end_byte; });
}

}  // namespace

void MeasureCoverage(const Flow& a, DiffReport& report) {
  std::unordered_set<int64_t> picked;
  std::unordered_set<int64_t> compared;
  std::unordered_set<int64_t> deleted;
  for (const DiffRow& row : report.rows) {
    if (!row.picked) continue;
    picked.insert(row.a_calls.begin(), row.a_calls.end());
    if (row.b_calls.empty()) deleted.insert(row.a_calls.begin(), row.a_calls.end());
    // Every trace has the numbers that the program itself read on the host: they alone say little.
    const bool judged = row.verdict != DiffVerdict::kNotComparable && row.output != kHostValue;
    if (judged && !row.a_calls.empty()) {
      compared.insert(row.a_calls.back());
    }
  }
  Coverage& coverage = report.coverage;
  std::vector<bool> told(a.size(), false);
  for (size_t node = a.size(); node-- > 0;) {
    told[node] = compared.contains(a.call_id(node));
    for (const FlowConsumer& consumer : a.ConsumersOf(node)) {
      told[node] = told[node] || told[consumer.node];
    }
    if (!picked.contains(a.call_id(node)) || !Computes(a, node)) continue;
    ++coverage.computed;
    coverage.covered += told[node] ? 1 : 0;
    if (!told[node] && deleted.contains(a.call_id(node))) ++report.counts.without_counterpart;
  }
}

}  // namespace acltape::analyzer::diff
