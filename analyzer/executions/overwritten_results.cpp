#include "analyzer/executions/overwritten_results.h"

#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "analyzer/calls/byte_map.h"
#include "analyzer/calls/byte_set.h"

namespace acltape::analyzer::executions {
namespace {

// The last write of bytes.
struct Overwrite {
  int64_t buffer = 0;
  int32_t graph = -1;  // -1: an entry that ran alone
  uint32_t entry = 0;
  uint32_t turn = 0;
};

class OverwrittenFinder {
 public:
  explicit OverwrittenFinder(const OwnGraphs& graphs)
      : graphs_(graphs), work_(*graphs.work), trace_(*graphs.work->trace) {}

  std::vector<OverwrittenResult> Find() {
    FindShared();
    if (shared_.empty()) return {};
    for (size_t turn = 0; turn < graphs_.turns.size(); ++turn) {
      const Turn& now = graphs_.turns[turn];
      if (now.graph < 0) {
        Run(now.entry, static_cast<uint32_t>(turn));
      } else {
        Execute(now.graph, static_cast<uint32_t>(turn));
      }
    }
    return std::move(rows_);
  }

 private:
  const storage::Buffer* OnDevice(int64_t id) const {
    const storage::Buffer& buffer = trace_.GetBuffer(id);
    return buffer.device == 0 || buffer.address == 0 ? nullptr : &buffer;
  }

  // Addresses that graphs write as different tensors: nothing else is followed.
  void FindShared() {
    ByteMap<int64_t> owners;
    for (const OwnGraph& graph : graphs_.graphs) {
      if (graph.executed.empty()) continue;
      for (const GraphUse& use : graph.footprint.writes) {
        const storage::Buffer* buffer = OnDevice(use.buffer);
        if (buffer == nullptr) continue;
        const int64_t first = buffer->address + use.first, end = buffer->address + use.end;
        owners.Within(first, end, [&](int64_t from, int64_t to, int64_t owner) {
          if (owner != use.buffer) shared_.Add(from, to);
        });
        owners.Set(first, end, use.buffer);
      }
    }
  }

  void Write(int64_t id, int64_t from, int64_t to, const Overwrite& by) {
    const storage::Buffer* buffer = OnDevice(id);
    if (buffer == nullptr) return;
    for (const ByteRange& part : shared_.Within(buffer->address + from, buffer->address + to)) {
      last_.Set(part.first, part.end, by);
    }
  }

  void Execute(int32_t graph, uint32_t turn) {
    for (const GraphUse& use : graphs_.graphs[graph].footprint.writes) {
      Write(use.buffer, use.first, use.end, {use.buffer, graph, use.entry, turn});
      results_[use.buffer] = {use.buffer, graph, use.entry, turn};
    }
  }

  void Run(uint32_t entry, uint32_t turn) {
    work_.VisitAccesses(entry, [&](const ByteAccess& access) {
      const auto result = access.write ? results_.end() : results_.find(access.buffer);
      const storage::Buffer* buffer = result == results_.end() ? nullptr : OnDevice(access.buffer);
      if (buffer == nullptr) return;
      last_.Within(
          buffer->address + access.first, buffer->address + access.end,
          [&](int64_t, int64_t, const Overwrite& by) { Check(result->second, by, entry); });
    });
    work_.VisitAccesses(entry, [&](const ByteAccess& access) {
      if (!access.write) return;
      Write(access.buffer, access.first, access.end, {access.buffer, -1, entry, turn});
      results_.erase(access.buffer);
    });
  }

  void Check(const Overwrite& result, const Overwrite& by, uint32_t reader) {
    if (by.graph < 0 || by.graph == result.graph || by.buffer == result.buffer) return;
    if (by.turn < result.turn) return;
    if (!pairs_.insert({result.entry, by.graph}).second) return;
    rows_.push_back({result.entry, by.entry, by.turn, reader});
  }

  const OwnGraphs& graphs_;
  const Work& work_;
  const storage::Reader& trace_;
  ByteSet shared_;                                  // addresses
  ByteMap<Overwrite> last_;                         // by address
  std::unordered_map<int64_t, Overwrite> results_;  // the last of executions, by buffer
  std::set<std::pair<uint32_t, int32_t>> pairs_;
  std::vector<OverwrittenResult> rows_;
};

}  // namespace

std::vector<OverwrittenResult> FindOverwrittenResults(const OwnGraphs& graphs) {
  return OverwrittenFinder(graphs).Find();
}

}  // namespace acltape::analyzer::executions
