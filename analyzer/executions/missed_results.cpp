#include "analyzer/executions/missed_results.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace acltape::analyzer::executions {
namespace {

using WorkLine = std::pair<int64_t, int32_t>;  // operator and place

class OtherResultFinder {
 public:
  OtherResultFinder(const OwnGraphs& graphs, const std::function<int32_t(size_t)>& place_of)
      : graphs_(graphs), work_(*graphs.work), place_of_(place_of) {}

  std::vector<OtherResult> Find() {
    FindKinds();
    if (!any_alike_) return {};
    for (size_t turn = 0; turn < graphs_.turns.size(); ++turn) {
      const Turn& now = graphs_.turns[turn];
      if (now.graph >= 0) {
        Execute(now.graph, static_cast<uint32_t>(turn));
      } else {
        Run(now.entry);
      }
    }
    for (const auto& [graph, kind] : kind_of_) EndRound(kind);
    return Rows();
  }

 private:
  struct State {
    bool fresh = false;  // it was executed since its results were read
    bool read = false;   // something has read a result of it, ever
    uint32_t first = 0;  // the turn of its first execution
    bool executed = false;
  };
  struct Missed {
    uint32_t reader = 0, writer = 0, execution = 0;
    size_t rounds = 0;
  };

  void FindKinds() {
    std::map<std::vector<WorkLine>, int32_t> kinds;
    std::map<int32_t, size_t> graphs_of_kind;
    for (size_t g = 0; g < graphs_.graphs.size(); ++g) {
      std::vector<WorkLine> lines;
      for (const uint32_t entry : graphs_.graphs[g].held) {
        if (place_of_(entry) == 0 && NeedsLine(work_, entry)) break;
        lines.emplace_back(work_.op(entry).op_id, place_of_(entry));
      }
      if (lines.empty() || lines.size() != graphs_.graphs[g].held.size()) continue;
      const auto next = static_cast<int32_t>(kinds.size());
      const int32_t kind = kinds.try_emplace(std::move(lines), next).first->second;
      kind_of_.emplace(static_cast<int32_t>(g), kind);
      any_alike_ = ++graphs_of_kind[kind] > 1 || any_alike_;
    }
    if (!any_alike_) return;
    std::unordered_set<int64_t> shared;  // results that several graphs write
    for (size_t g = 0; g < graphs_.graphs.size(); ++g) {
      for (const uint32_t entry : graphs_.graphs[g].held) {
        work_.VisitAccesses(entry, [&](const ByteAccess& access) {
          if (!access.write || shared.contains(access.buffer)) return;
          const auto [owner, is_new] =
              owner_.try_emplace(access.buffer, static_cast<int32_t>(g), entry);
          if (!is_new && owner->second.first != static_cast<int32_t>(g)) {
            shared.insert(access.buffer);
            owner_.erase(owner);
          } else {
            owner->second.second = entry;
          }
        });
      }
    }
    states_.resize(graphs_.graphs.size());
  }

  void Execute(int32_t graph, uint32_t turn) {
    for (const GraphUse& use : graphs_.graphs[graph].footprint.reads) {
      const auto owner = owner_.find(use.buffer);
      if (owner == owner_.end()) continue;
      states_[owner->second.first].read = true;
      states_[owner->second.first].fresh = false;
    }
    const auto kind = kind_of_.find(graph);
    if (kind == kind_of_.end()) return;
    EndRound(kind->second);
    State& state = states_[graph];
    if (!state.executed) state.first = turn;
    state.executed = state.fresh = true;
    last_[kind->second] = graph;
  }

  void Run(uint32_t entry) {
    work_.VisitAccesses(entry, [&](const ByteAccess& access) {
      if (access.write) return;
      const auto owner = owner_.find(access.buffer);
      if (owner == owner_.end()) return;
      const auto [graph, writer] = owner->second;
      State& state = states_[graph];
      const auto kind = kind_of_.find(graph);
      const auto last = kind == kind_of_.end() ? last_.end() : last_.find(kind->second);
      if (last != last_.end() && last->second != graph && !state.fresh) {
        stale_[kind->second].try_emplace(graph, entry, writer);
      }
      state.read = true;
      state.fresh = false;
    });
  }

  // Counts the graphs whose old results were read in place of those of the last execution.
  void EndRound(int32_t kind) {
    const auto stale = stale_.find(kind);
    if (stale == stale_.end()) return;
    const int32_t executed = last_.at(kind);
    for (const auto& [graph, read] : stale->second) {
      Missed& missed = missed_[{executed, graph}];
      if (missed.rounds++ > 0) continue;
      missed.reader = read.first;
      missed.writer = read.second;
      missed.execution = states_[executed].first;
    }
    stale_.erase(stale);
  }

  std::vector<OtherResult> Rows() const {
    std::vector<OtherResult> rows;
    for (const auto& [pair, missed] : missed_) {
      const auto [executed, graph] = pair;
      if (missed.rounds < kFewestExecutions || states_[executed].read) continue;
      const Footprint& footprint = graphs_.graphs[executed].footprint;
      if (footprint.writes.empty()) continue;
      const bool outlives =
          std::any_of(footprint.writes.begin(), footprint.writes.end(),
                      [&](const GraphUse& use) { return !owner_.contains(use.buffer); });
      if (outlives) continue;  // it also changes what others see
      rows.push_back({missed.reader, missed.writer, footprint.writes.back().entry, missed.execution,
                      missed.rounds});
    }
    return rows;
  }

  const OwnGraphs& graphs_;
  const Work& work_;
  const std::function<int32_t(size_t)>& place_of_;
  bool any_alike_ = false;
  std::map<int32_t, int32_t> kind_of_;  // by graph
  // The only graph that writes a buffer, and its last entry that does.
  std::unordered_map<int64_t, std::pair<int32_t, uint32_t>> owner_;
  std::vector<State> states_;        // by graph
  std::map<int32_t, int32_t> last_;  // the graph that was executed last, by kind
  // Old results that were read since: graph, reader and writer, by kind.
  std::map<int32_t, std::map<int32_t, std::pair<uint32_t, uint32_t>>> stale_;
  std::map<std::pair<int32_t, int32_t>, Missed> missed_;  // by the executed graph and the other
};

class DroppedResultFinder {
 public:
  DroppedResultFinder(const OwnGraphs& graphs, const std::function<int32_t(size_t)>& place_of)
      : graphs_(graphs), work_(*graphs.work), trace_(*graphs.work->trace), place_of_(place_of) {}

  std::vector<DroppedResult> Find() {
    for (size_t g = 0; g < graphs_.graphs.size(); ++g) {
      const OwnGraph& graph = graphs_.graphs[g];
      if (graph.executed.size() < kFewestExecutions) continue;
      if (!indexed_) MakeIndex();
      for (const GraphUse& use : graph.footprint.writes) {
        const storage::Buffer& buffer = trace_.GetBuffer(use.buffer);
        const int64_t last_ns = graphs_.turns[graph.executed.back()].begin_ns;
        if (buffer.device == 0 || buffer.free_ns < graph.end_ns || buffer.free_ns > last_ns) {
          continue;
        }
        const auto first = first_.find(use.buffer);
        const bool of_capture =
            first != first_.end() && graphs_.graph_of[first->second] == static_cast<int32_t>(g);
        if (of_capture) Check(graph, use, buffer.free_ns);
      }
    }
    return std::move(rows_);
  }

 private:
  WorkLine LineOf(uint32_t entry) const { return {work_.op(entry).op_id, place_of_(entry)}; }

  void MakeIndex() {
    indexed_ = true;
    first_ = FirstEntries(work_);
    readers_ = LoneReaders(graphs_);
    for (const Turn& turn : graphs_.turns) {
      if (turn.graph < 0) lines_[LineOf(turn.entry)].push_back(turn.entry);
    }
  }

  void Check(const OwnGraph& graph, const GraphUse& result, int64_t free_ns) {
    const WorkLine line = LineOf(result.entry);
    // Work of autograd itself for a gradient has no line.
    const bool of_autograd = work_.calls[result.entry].phase == storage::Phase::kBackward;
    const auto runs = lines_.find(line);
    if ((line.second == 0 && !of_autograd) || runs == lines_.end()) return;
    if (readers_.contains(result.buffer)) return;
    std::set<WorkLine> inside;
    for (const uint32_t entry : graph.held) inside.insert(LineOf(entry));
    std::unordered_set<int64_t> inputs;
    for (const GraphUse& use : graph.footprint.reads) inputs.insert(use.buffer);
    for (const uint32_t run : runs->second) {
      if (work_.calls[run].call_id > graph.begin_call) break;
      const int64_t update = UpdateAfter(run, inside, inputs, graph.begin_call);
      if (update < 0) continue;
      const WorkLine of_update = LineOf(static_cast<uint32_t>(update));
      const bool goes_on = work_.calls[lines_.at(of_update).back()].call_id > graph.end_call;
      if (goes_on || !told_.insert({graph.model_id, of_update}).second) return;
      const auto execution =
          std::find_if(graph.executed.begin(), graph.executed.end(),
                       [&](uint32_t turn) { return graphs_.turns[turn].begin_ns >= free_ns; });
      if (execution == graph.executed.end()) return;
      rows_.push_back({WithLine(graph, result.entry), static_cast<uint32_t>(update), *execution});
      return;
    }
  }

  // The entry, or the one before it that has a line.
  uint32_t WithLine(const OwnGraph& graph, uint32_t entry) const {
    auto held = std::upper_bound(graph.held.begin(), graph.held.end(), entry);
    while (held != graph.held.begin()) {
      if (place_of_(*--held) != 0) return *held;
    }
    return entry;
  }

  // An entry of another line that reads what the run makes, and changes what the graph reads.
  int64_t UpdateAfter(uint32_t run, const std::set<WorkLine>& inside,
                      const std::unordered_set<int64_t>& inputs, int64_t begin_call) const {
    int64_t update = -1;
    work_.VisitAccesses(run, [&](const ByteAccess& made) {
      const auto readers = made.write ? readers_.find(made.buffer) : readers_.end();
      if (readers == readers_.end()) return;
      for (const uint32_t reader : readers->second) {
        if (update >= 0 || work_.calls[reader].call_id > begin_call) break;
        if (reader <= run || inside.contains(LineOf(reader))) continue;
        work_.VisitAccesses(reader, [&](const ByteAccess& access) {
          if (access.write && inputs.contains(access.buffer)) update = reader;
        });
      }
    });
    return update;
  }

  const OwnGraphs& graphs_;
  const Work& work_;
  const storage::Reader& trace_;
  const std::function<int32_t(size_t)>& place_of_;
  bool indexed_ = false;
  std::unordered_map<int64_t, uint32_t> first_;                 // entries, by buffer
  std::map<WorkLine, std::vector<uint32_t>> lines_;             // entries that ran alone
  std::unordered_map<int64_t, std::vector<uint32_t>> readers_;  // entries that ran alone, by buffer
  std::set<std::pair<int64_t, WorkLine>> told_;                 // model and line of the update
  std::vector<DroppedResult> rows_;
};

}  // namespace

std::vector<OtherResult> FindOtherResults(const OwnGraphs& graphs,
                                          const std::function<int32_t(size_t)>& place_of) {
  return OtherResultFinder(graphs, place_of).Find();
}

std::vector<DroppedResult> FindDroppedResults(const OwnGraphs& graphs,
                                              const std::function<int32_t(size_t)>& place_of) {
  return DroppedResultFinder(graphs, place_of).Find();
}

}  // namespace acltape::analyzer::executions
