#include "analyzer/diff/coverage.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <unordered_set>
#include <vector>

#include "meaning/options.h"
#include "storage/database.h"

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

// The leaves of PyTorch whose calls were captured: they computed nothing there, and what their
// graph computes later is no leaf. Empty at the ACL level.
std::unordered_set<int64_t> CapturedLeaves(const Work& work) {
  std::unordered_set<int64_t> leaves;
  if (work.dialect != Dialect::kAten) return leaves;
  storage::Statement rows(work.trace->database(),
                          "SELECT DISTINCT c.parent_id FROM call_extra x JOIN call_row c ON "
                          "c.call_id = x.call_id WHERE x.model_id > 0 AND c.parent_id > 0");
  while (rows.Next()) leaves.insert(rows.Integer(0));
  return leaves;
}

// The bytes that a later node overwrites as a whole, as the walk from the last node on meets them.
class LaterWrites {
 public:
  explicit LaterWrites(const Flow& flow) : flow_(flow) {}

  // True if nothing reads what the node wrote, and a later node overwrites all of it.
  bool Hides(size_t node) const {
    if (!flow_.ConsumersOf(node).empty()) return false;
    const auto& writes = flow_.label(node).writes;
    return std::all_of(writes.begin(), writes.end(), [&](const FormAccess& write) {
      return written_.contains(RangeOf(node, write));
    });
  }
  void Add(size_t node) {
    for (const FormAccess& write : flow_.label(node).writes) {
      if (!write.strided) written_.insert(RangeOf(node, write));
    }
  }

 private:
  using Range = std::tuple<int64_t, int64_t, int64_t>;  // buffer, first byte, end byte

  Range RangeOf(size_t node, const FormAccess& write) const {
    const auto buffers = flow_.work->buffers(flow_.nodes[node].call);
    const bool known = write.slot >= 0 && static_cast<size_t>(write.slot) < buffers.size();
    return {known ? buffers[static_cast<size_t>(write.slot)] : 0, write.first_byte, write.end_byte};
  }

  const Flow& flow_;
  std::set<Range> written_;
};

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
  const std::unordered_set<int64_t> captured = CapturedLeaves(*a.work);
  int64_t left_out = 0;
  Coverage& coverage = report.coverage;
  std::vector<bool> told(a.size(), false);
  LaterWrites later(a);
  for (size_t node = a.size(); node-- > 0;) {
    const bool hidden = later.Hides(node);
    later.Add(node);
    told[node] = compared.contains(a.call_id(node));
    for (const FlowConsumer& consumer : a.ConsumersOf(node)) {
      told[node] = told[node] || told[consumer.node];
    }
    if (!picked.contains(a.call_id(node)) || !Computes(a, node)) continue;
    if (!told[node] && captured.contains(a.call_id(node))) {
      ++left_out;
      continue;
    }
    if (!told[node] && hidden) continue;  // it can reach nothing
    ++coverage.computed;
    coverage.covered += told[node] ? 1 : 0;
    if (!told[node] && deleted.contains(a.call_id(node))) ++report.counts.without_counterpart;
  }
  if (left_out > 0) {
    report.notes.push_back(
        fmt::format("{} leaves of A were captured and computed nothing there; what their graphs "
                    "computed is compared with @level acl"_cli,
                    left_out));
  }
}

}  // namespace acltape::analyzer::diff
