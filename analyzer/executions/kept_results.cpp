#include "analyzer/executions/kept_results.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>

namespace acltape::analyzer::executions {
namespace {

// Operators that nobody applies to a tensor and itself: their two operands were meant to be two
// results.
constexpr std::string_view kOfTwoValues[] = {"aten::add_",   "aten::sub",     "aten::eq",
                                             "aten::ne",     "aten::isclose", "aten::maximum",
                                             "aten::minimum"};

// The same bytes, read from the same line.
using Reading = std::tuple<int32_t, int64_t, int64_t, int64_t>;  // place, buffer, first, end

struct Reads {
  uint32_t reader = 0;
  size_t count = 0;
};

struct State {
  bool executed = false;
  bool read = false;                  // somebody read a result of the last execution
  size_t unread = 0;                  // executions before the last one whose results nobody read
  uint32_t last = 0;                  // turn
  std::map<Reading, Reads> readings;  // since the last execution
  bool told = false;
};

class KeptResultFinder {
 public:
  KeptResultFinder(const OwnGraphs& graphs, const std::function<int32_t(size_t)>& place_of)
      : graphs_(graphs), work_(*graphs.work), place_of_(place_of) {}

  std::vector<KeptResult> Find() {
    states_.resize(graphs_.graphs.size());
    for (size_t g = 0; g < graphs_.graphs.size(); ++g) {
      std::set<int64_t> buffers;
      for (const GraphUse& use : graphs_.graphs[g].footprint.writes) {
        if (buffers.insert(use.buffer).second) writers_[use.buffer].push_back(g);
      }
    }
    for (size_t turn = 0; turn < graphs_.turns.size(); ++turn) {
      const Turn& now = graphs_.turns[turn];
      if (now.graph >= 0) {
        Execute(static_cast<size_t>(now.graph), static_cast<uint32_t>(turn));
      } else {
        Run(now.entry);
      }
    }
    for (size_t g = 0; g < states_.size(); ++g) Judge(g);
    return std::move(rows_);
  }

 private:
  void Execute(size_t graph, uint32_t turn) {
    // A graph reads its own state, and the results of graphs before it.
    for (const GraphUse& use : graphs_.graphs[graph].footprint.reads) MarkRead(use.buffer);
    Judge(graph);
    State& state = states_[graph];
    if (state.executed) state.unread = state.read ? 0 : state.unread + 1;
    state.executed = true;
    state.read = false;
    state.last = turn;
    state.readings.clear();
  }

  void MarkRead(int64_t buffer) {
    const auto writers = writers_.find(buffer);
    if (writers == writers_.end()) return;
    for (const size_t graph : writers->second) states_[graph].read = true;
  }

  // The graph that was executed last among those that write the buffer; -1: none was.
  int64_t LastWriter(int64_t buffer) const {
    const auto writers = writers_.find(buffer);
    if (writers == writers_.end()) return -1;
    int64_t last = -1;
    for (const size_t graph : writers->second) {
      if (!states_[graph].executed) continue;
      if (last < 0 || states_[graph].last > states_[static_cast<size_t>(last)].last) {
        last = static_cast<int64_t>(graph);
      }
    }
    return last;
  }

  void Run(uint32_t entry) {
    std::map<Reading, std::map<int, size_t>> once;  // times in each argument
    work_.VisitAccesses(entry, [&](const ByteAccess& access) {
      if (access.write) return;
      const Reading reading{place_of_(entry), access.buffer, access.first, access.end};
      ++once[reading][access.form->argument];
    });
    const bool of_two = std::find(std::begin(kOfTwoValues), std::end(kOfTwoValues),
                                  work_.op(entry).name) != std::end(kOfTwoValues);
    for (const auto& [reading, arguments] : once) {
      const int64_t graph = LastWriter(std::get<1>(reading));
      if (graph < 0) continue;
      size_t times = 0;
      for (const auto& [argument, count] : arguments) {
        times = of_two ? times + count : std::max(times, count);
      }
      State& state = states_[static_cast<size_t>(graph)];
      MarkRead(std::get<1>(reading));
      Reads& reads = state.readings[reading];
      if (reads.count == 0) reads.reader = entry;
      reads.count += times;
    }
    work_.VisitAccesses(entry, [&](const ByteAccess& access) {
      if (!access.write) return;
      const int64_t graph = LastWriter(access.buffer);
      if (graph < 0) return;
      // From here on the bytes hold something else.
      Judge(static_cast<size_t>(graph));
      std::erase_if(states_[static_cast<size_t>(graph)].readings, [&](const auto& reading) {
        return std::get<1>(reading.first) == access.buffer;
      });
    });
  }

  void Judge(size_t graph) {
    State& state = states_[graph];
    if (state.told || state.unread == 0) return;
    for (const auto& [reading, reads] : state.readings) {
      if (reads.count < 2 || reads.count != state.unread + 1) continue;
      const auto [place, buffer, first, end] = reading;
      for (const GraphUse& use : graphs_.graphs[graph].footprint.writes) {
        if (use.buffer != buffer || use.end <= first || end <= use.first) continue;
        rows_.push_back({state.last, use.entry, reads.reader, reads.count, state.unread});
        state.told = true;
        return;
      }
    }
  }

  const OwnGraphs& graphs_;
  const Work& work_;
  const std::function<int32_t(size_t)>& place_of_;
  std::vector<State> states_;                                 // by graph
  std::unordered_map<int64_t, std::vector<size_t>> writers_;  // graphs, by buffer
  std::vector<KeptResult> rows_;
};

}  // namespace

std::vector<KeptResult> FindKeptResults(const OwnGraphs& graphs,
                                        const std::function<int32_t(size_t)>& place_of) {
  return KeptResultFinder(graphs, place_of).Find();
}

}  // namespace acltape::analyzer::executions
