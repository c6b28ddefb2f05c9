#include "analyzer/executions/replaced_results.h"

#include <algorithm>
#include <set>
#include <unordered_map>

namespace acltape::analyzer::executions {
namespace {

class ReplacedFinder {
 public:
  explicit ReplacedFinder(const OwnGraphs& graphs)
      : graphs_(graphs), work_(*graphs.work), trace_(*graphs.work->trace) {}

  std::vector<ReplacedResult> Find() {
    for (size_t g = 0; g < graphs_.graphs.size(); ++g) {
      const OwnGraph& graph = graphs_.graphs[g];
      if (graph.executed.empty()) continue;
      std::set<int64_t> seen;
      for (const GraphUse& use : graphs_.graphs[g].footprint.writes) {
        if (!seen.insert(use.buffer).second) continue;
        const storage::Buffer& buffer = trace_.GetBuffer(use.buffer);
        if (buffer.device == 0 || buffer.free_ns < graph.end_ns) continue;
        if (first_.empty()) first_ = FirstEntries(work_);
        const auto first = first_.find(use.buffer);
        const bool of_capture =
            first != first_.end() && graphs_.graph_of[first->second] == static_cast<int32_t>(g);
        if (of_capture) Check(graph, use, buffer);
      }
    }
    return std::move(rows_);
  }

 private:
  // The layout with which an entry writes a buffer; null: it does not.
  const storage::Layout* LayoutIn(uint32_t entry, int64_t buffer) const {
    const storage::Layout* layout = nullptr;
    work_.VisitAccesses(entry, [&](const ByteAccess& access) {
      if (access.write && access.buffer == buffer) layout = access.form->layout;
    });
    return layout;
  }

  void Check(const OwnGraph& graph, const GraphUse& result, const storage::Buffer& ended) {
    const auto after = std::find_if(graph.executed.begin(), graph.executed.end(), [&](uint32_t t) {
      return graphs_.turns[t].begin_ns >= ended.free_ns;
    });
    if (after == graph.executed.end()) return;
    const storage::Layout* layout = LayoutIn(result.entry, ended.buffer_id);
    if (layout == nullptr) return;
    // The end was noticed at the execution. It came after the execution before.
    const uint32_t from = after == graph.executed.begin() ? 0 : *std::prev(after);
    for (uint32_t turn = *after; turn-- > from;) {
      const Turn& one = graphs_.turns[turn];
      if (one.call_id < graph.end_call) break;
      if (one.graph >= 0) continue;
      int64_t made = 0;
      work_.VisitAccesses(one.entry, [&](const ByteAccess& access) {
        if (!access.write || access.form->layout == nullptr) return;
        const storage::Buffer& buffer = trace_.GetBuffer(access.buffer);
        const bool is_new =
            buffer.device == ended.device && IsFirstNamedBy(access.buffer, one.entry);
        if (is_new && access.form->layout->shape == layout->shape &&
            access.form->layout->dtype == layout->dtype) {
          made = access.buffer;
        }
      });
      if (made == 0 || IsMemoryOf(graph, trace_.GetBuffer(made))) continue;
      if (const int64_t reader = ReaderAfter(made, *after); reader >= 0) {
        rows_.push_back({*after, result.entry, one.entry, static_cast<uint32_t>(reader)});
        return;
      }
    }
  }

  // True if the buffer lies in memory that the graph uses: a framework names a graph's inputs anew,
  // by their addresses, each time that it fills them.
  bool IsMemoryOf(const OwnGraph& graph, const storage::Buffer& buffer) const {
    const auto overlaps = [&](const GraphUse& use) {
      const storage::Buffer& own = trace_.GetBuffer(use.buffer);
      return own.device == buffer.device &&
             own.address + use.first < buffer.address + buffer.bytes &&
             buffer.address < own.address + use.end;
    };
    return std::any_of(graph.footprint.reads.begin(), graph.footprint.reads.end(), overlaps) ||
           std::any_of(graph.footprint.writes.begin(), graph.footprint.writes.end(), overlaps);
  }

  bool IsFirstNamedBy(int64_t buffer, uint32_t entry) const {
    const auto found = first_.find(buffer);
    return found != first_.end() && found->second == entry;
  }

  // The first entry after an execution that reads the buffer, if nothing writes it before; else -1.
  int64_t ReaderAfter(int64_t buffer, uint32_t execution) const {
    for (size_t turn = execution + 1; turn < graphs_.turns.size(); ++turn) {
      const Turn& one = graphs_.turns[turn];
      if (one.graph >= 0) continue;
      bool read = false, written = false;
      work_.VisitAccesses(one.entry, [&](const ByteAccess& access) {
        if (access.buffer != buffer) return;
        (access.write ? written : read) = true;
      });
      if (read) return one.entry;
      if (written) return -1;
    }
    return -1;
  }

  const OwnGraphs& graphs_;
  const Work& work_;
  const storage::Reader& trace_;
  std::unordered_map<int64_t, uint32_t> first_;  // entries, by buffer
  std::vector<ReplacedResult> rows_;
};

}  // namespace

std::vector<ReplacedResult> FindReplacedResults(const OwnGraphs& graphs) {
  return ReplacedFinder(graphs).Find();
}

}  // namespace acltape::analyzer::executions
