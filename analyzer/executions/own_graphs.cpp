#include "analyzer/executions/own_graphs.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "analyzer/executions/hidden_reads.h"

namespace acltape::analyzer::executions {
namespace {

using K = AclCallKind;

// True if the entry changes or reads memory of the device when it runs.
bool IsActive(const Work& work, size_t entry) {
  const WorkForm& form = work.form(entry);
  return work.calls[entry].status == 0 && form.active();
}

class GraphFinder {
 public:
  GraphFinder(const Work& work, const Work& calls) : work_(work), calls_(calls) {
    graphs_.work = &work;
    graphs_.calls = &calls;
    graphs_.graph_of.assign(work.size(), OwnGraphs::kAlone);
    graphs_.updatable.assign(work.size(), 0);
  }

  OwnGraphs Find() {
    FindCaptures();
    if (graphs_.graphs.empty()) return std::move(graphs_);
    FindLaunchingThread();
    PlaceLaunches();
    if (&work_ != &calls_) PlaceLeaves();
    for (size_t i = 0; i < work_.size(); ++i) {
      const int32_t graph = graphs_.graph_of[i];
      if (graph >= 0) graphs_.graphs[graph].held.push_back(static_cast<uint32_t>(i));
    }
    FindTurns();
    for (OwnGraph& graph : graphs_.graphs) {
      if (graph.executed.empty()) continue;
      // A leaf that put nothing into the graph, such as a question for a format, touches nothing in
      // an execution.
      std::vector<uint32_t> launched = graph.held;
      if (&work_ != &calls_) {
        std::erase_if(launched, [&](uint32_t entry) { return launched_[entry] == 0; });
      }
      graph.footprint = FootprintOf(work_, launched);
    }
    FindHiddenReads(graphs_);
    return std::move(graphs_);
  }

 private:
  int64_t Object(size_t call) const {
    const WorkForm& form = calls_.form(call);
    return form.Integer(form.function->object);
  }

  void FindCaptures() {
    std::unordered_map<int64_t, OwnGraph> open;  // by stream
    for (size_t i = 0; i < calls_.size(); ++i) {
      const WorkCall& call = calls_.calls[i];
      const K kind = calls_.form(i).acl_kind();
      if (call.status != 0) continue;
      if (kind == K::kCaptureBegin) {
        OwnGraph graph;
        graph.thread = call.thread;
        graph.begin_call = call.call_id;
        open[call.stream_id] = graph;
      } else if (kind == K::kCaptureEnd) {
        const auto begun = open.find(call.stream_id);
        if (begun == open.end() || Object(i) == 0) continue;
        OwnGraph graph = begun->second;
        open.erase(begun);
        graph.model_id = Object(i);
        graph.end_call = call.call_id;
        graph.end_ns = call.begin_ns + call.duration_ns;
        index_of_[graph.model_id] = static_cast<int32_t>(graphs_.graphs.size());
        graphs_.graphs.push_back(graph);
      }
    }
    for (size_t g = 0; g < graphs_.graphs.size(); ++g) {
      by_begin_.emplace_back(graphs_.graphs[g].begin_call, g);
    }
    std::sort(by_begin_.begin(), by_begin_.end());
  }

  // An adapter launches from a thread of its own what all threads of the program ask for. Beside
  // leaves this does not matter: those run on the program's threads.
  void FindLaunchingThread() {
    if (&work_ != &calls_) return;
    int32_t only = -1;
    for (const WorkCall& call : calls_.calls) {
      if (calls_.forms[call.form].acl_kind() != K::kOperator) continue;
      if (only >= 0 && call.thread != only) return;
      only = call.thread;
    }
    launches_for_all_ = only >= 0;
  }

  // Gives the entries that launch work of a graph, or of an update, their place.
  void PlaceLaunches() {
    const bool leaves = &work_ != &calls_;
    std::set<int64_t> updating;                        // streams
    std::map<int64_t, std::vector<int64_t>> grouping;  // entries of the open task group of a stream
    std::map<int64_t, std::vector<int64_t>> groups;    // entries, by the group's address
    launched_.assign(work_.size(), 0);
    for (size_t i = 0; i < calls_.size(); ++i) {
      const WorkCall& call = calls_.calls[i];
      const K kind = calls_.form(i).acl_kind();
      if (call.status != 0) continue;
      if (kind == K::kUpdateBegin) updating.insert(call.stream_id);
      if (kind == K::kUpdateEnd) updating.erase(call.stream_id);
      if (kind == K::kGroupBegin) grouping[call.stream_id];
      if (kind == K::kGroupEnd) {
        groups[Object(i)] = std::move(grouping[call.stream_id]);
        grouping.erase(call.stream_id);
      }
      if (kind == K::kUpdateBegin) {
        for (const int64_t entry : groups[Object(i)]) graphs_.updatable[entry] = 1;
      }
      const auto graph = index_of_.find(call.model_id);
      const bool stored = call.model_id != 0 && graph != index_of_.end();
      if (!ChangesMemory(kind)) {
        if (!leaves && stored) graphs_.graph_of[i] = graph->second;
        continue;
      }
      if (stored) ++graphs_.graphs[graph->second].launches;
      const int64_t entry = leaves ? work_.Find(call.parent_id) : static_cast<int64_t>(i);
      if (entry < 0) continue;
      launched_[entry] = 1;
      if (stored) {
        graphs_.graph_of[entry] = graph->second;
        const auto group = grouping.find(call.stream_id);
        if (group != grouping.end()) group->second.push_back(entry);
      } else if (updating.contains(call.stream_id)) {
        graphs_.graph_of[entry] = OwnGraphs::kUpdate;
      } else if (kind == K::kOperator && graphs_.graph_of[entry] == OwnGraphs::kAlone) {
        NoteOutside(static_cast<uint32_t>(entry), call.stream_id);
      }
    }
  }

  void NoteOutside(uint32_t entry, int64_t stream) {
    const auto [call_id, thread] = std::pair(work_.calls[entry].call_id, work_.calls[entry].thread);
    // Captures of one thread follow each other, and few threads capture at a time.
    constexpr size_t kOpenAtOnce = 16;
    const auto after = std::upper_bound(
        by_begin_.begin(), by_begin_.end(), call_id,
        [](int64_t id, const std::pair<int64_t, size_t>& begin) { return id < begin.first; });
    size_t looked = 0;
    for (auto begin = after; begin != by_begin_.begin() && looked < kOpenAtOnce; ++looked) {
      OwnGraph& graph = graphs_.graphs[(--begin)->second];
      if (call_id > graph.end_call) continue;
      if (thread != graph.thread && !launches_for_all_) continue;
      if (graph.outside.empty()) graph.outside_stream = stream;
      if (graph.outside.empty() || graph.outside.back() != entry) graph.outside.push_back(entry);
      return;
    }
  }

  // A leaf without work on the device, such as a view, belongs to the capture during which a thread
  // made it that puts work into that capture.
  void PlaceLeaves() {
    std::set<std::pair<int32_t, int32_t>> threads;  // graph and thread
    for (size_t i = 0; i < work_.size(); ++i) {
      if (graphs_.graph_of[i] >= 0) threads.emplace(graphs_.graph_of[i], work_.calls[i].thread);
    }
    for (size_t g = 0; g < graphs_.graphs.size(); ++g) {
      const OwnGraph& graph = graphs_.graphs[g];
      const auto index = static_cast<int32_t>(g);
      threads.emplace(index, graph.thread);
      const auto [first, end] = work_.Between(graph.begin_call, graph.end_call);
      for (int64_t i = first; i < end; ++i) {
        if (graphs_.graph_of[i] != OwnGraphs::kAlone || launched_[i] != 0) continue;
        if (threads.contains({index, work_.calls[i].thread})) graphs_.graph_of[i] = index;
      }
    }
  }

  void FindTurns() {
    std::vector<Turn> executions;
    for (size_t i = 0; i < calls_.size(); ++i) {
      const WorkCall& call = calls_.calls[i];
      if (call.status != 0 || !IsExecution(calls_.form(i).acl_kind())) continue;
      const auto graph = index_of_.find(Object(i));
      if (graph == index_of_.end()) continue;
      executions.push_back({call.call_id, call.begin_ns, graph->second, 0, call.stream_id});
    }
    auto next = executions.begin();
    const auto add_before = [&](int64_t call_id) {
      for (; next != executions.end() && next->call_id < call_id; ++next) {
        graphs_.graphs[next->graph].executed.push_back(static_cast<uint32_t>(graphs_.turns.size()));
        graphs_.turns.push_back(*next);
      }
    };
    for (size_t i = 0; i < work_.size(); ++i) {
      if (graphs_.graph_of[i] != OwnGraphs::kAlone) continue;
      add_before(work_.calls[i].call_id);
      if (&work_ == &calls_ && !IsActive(work_, i)) continue;
      graphs_.turns.push_back({work_.calls[i].call_id, work_.calls[i].begin_ns, -1,
                               static_cast<uint32_t>(i), work_.calls[i].stream_id});
    }
    add_before(INT64_MAX);
  }

  const Work& work_;
  const Work& calls_;
  OwnGraphs graphs_;
  std::unordered_map<int64_t, int32_t> index_of_;     // by model
  std::vector<std::pair<int64_t, size_t>> by_begin_;  // graphs by the id of their begin
  std::vector<char> launched_;                        // by entry: it put work on the device
  bool launches_for_all_ = false;                     // one thread launches all operators
};

}  // namespace

bool OwnGraphs::HasExecutions() const {
  return std::any_of(graphs.begin(), graphs.end(),
                     [](const OwnGraph& graph) { return !graph.executed.empty(); });
}

OwnGraphs FindOwnGraphs(const Work& work, const Work& calls) {
  return GraphFinder(work, calls).Find();
}

std::unordered_map<int64_t, uint32_t> FirstEntries(const Work& work) {
  std::unordered_map<int64_t, uint32_t> first;
  for (size_t i = 0; i < work.size(); ++i) {
    for (const int64_t buffer : work.buffers(i))
      first.try_emplace(buffer, static_cast<uint32_t>(i));
  }
  return first;
}

std::unordered_map<int64_t, std::vector<uint32_t>> LoneReaders(const OwnGraphs& graphs) {
  std::unordered_map<int64_t, std::vector<uint32_t>> readers;
  for (const Turn& turn : graphs.turns) {
    if (turn.graph >= 0) continue;
    graphs.work->VisitAccesses(turn.entry, [&](const ByteAccess& access) {
      if (!access.write) readers[access.buffer].push_back(turn.entry);
    });
  }
  return readers;
}

}  // namespace acltape::analyzer::executions
