#include "analyzer/executions/eager_use.h"

#include <algorithm>
#include <unordered_set>

namespace acltape::analyzer::executions {

void EagerUse::MakeIndex() {
  indexed_ = true;
  first_ = FirstEntries(*graphs_.work);
  readers_ = LoneReaders(graphs_);
}

bool EagerUse::IsBeside(std::span<const uint32_t> run, const OwnGraph& graph) {
  const Work& work = *graphs_.work;
  if (run.empty() || graph.executed.empty()) return false;
  const int64_t first_execution = graphs_.turns[graph.executed.front()].call_id;
  if (work.calls[run.front()].call_id < first_execution) return false;
  if (!indexed_) MakeIndex();
  std::unordered_set<int64_t> made, of_graph;
  for (const uint32_t entry : run) {
    work.VisitAccesses(entry, [&](const ByteAccess& access) {
      if (access.write) made.insert(access.buffer);
    });
  }
  for (const GraphUse& use : graph.footprint.writes) of_graph.insert(use.buffer);
  for (const int64_t buffer : made) {
    if (first_.at(buffer) < run.front()) return true;  // it changes what was there before
    const auto readers = readers_.find(buffer);
    if (readers == readers_.end()) continue;
    const auto after = std::upper_bound(readers->second.begin(), readers->second.end(), run.back());
    const bool used = std::any_of(after, readers->second.end(), [&](uint32_t reader) {
      bool compares = false;
      work.VisitAccesses(reader, [&](const ByteAccess& access) {
        compares = compares || (!access.write && of_graph.contains(access.buffer));
      });
      return !compares;
    });
    if (used) return true;
  }
  return false;
}

bool IsOneChange(const RunOrder& order) {
  return order.other_kinds == 1 && order.first_equal != UINT32_MAX &&
         order.last_other < order.first_equal;
}

}  // namespace acltape::analyzer::executions
