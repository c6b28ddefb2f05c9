#include "analyzer/executions/baked_branches.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "analyzer/executions/eager_use.h"
#include "analyzer/executions/kernels_on_host.h"

namespace acltape::analyzer::executions {
namespace {

using PathLine = std::pair<int64_t, int32_t>;  // operator and place
using Path = std::vector<PathLine>;
using Entries = std::span<const uint32_t>;

constexpr size_t kMostKinds = 64;                // graphs of different lines that are looked at
constexpr size_t kMostPaths = 64;                // different paths of eager runs of one kind
constexpr int64_t kMostBranchEntries = 1 << 26;  // entries that are compared in all
constexpr std::string_view kDropout = "dropout";

// Where two runs part: the first `front` entries are the same, and the last `back`.
struct Parting {
  size_t front = 0;
  size_t back = 0;
};

Parting PartingOf(const Path& a, const Path& b) {
  Parting parting;
  const size_t shorter = std::min(a.size(), b.size());
  while (parting.front < shorter && a[parting.front] == b[parting.front]) ++parting.front;
  while (parting.back < shorter - parting.front &&
         a[a.size() - 1 - parting.back] == b[b.size() - 1 - parting.back]) {
    ++parting.back;
  }
  return parting;
}

Entries Middle(Entries entries, const Parting& parting) {
  return entries.subspan(parting.front, entries.size() - parting.front - parting.back);
}

class BranchFinder {
 public:
  BranchFinder(const OwnGraphs& graphs, const std::function<int32_t(size_t)>& place_of,
               const std::function<int32_t(size_t)>& function_of)
      : graphs_(graphs),
        work_(*graphs.work),
        place_of_(place_of),
        function_of_(function_of),
        eager_use_(graphs) {}

  std::vector<BakedBranch> Find() {
    std::map<Path, size_t> kinds;  // the first graph of each that is executed twice
    for (size_t g = 0; g < graphs_.graphs.size(); ++g) {
      Path path = PathOf(HeldBy(g));
      if (path.empty()) continue;
      captured_.insert(path);
      if (graphs_.graphs[g].executed.size() > 1) kinds.emplace(std::move(path), g);
    }
    if (kinds.empty()) return {};
    std::vector<size_t> executed;
    for (const auto& [path, graph] : kinds) executed.push_back(graph);
    std::sort(executed.begin(), executed.end());
    executed.resize(std::min(executed.size(), kMostKinds));
    FindReads();
    for (const size_t graph : executed) FindIn(graph);
    return std::move(rows_);
  }

 private:
  PathLine LineOf(uint32_t entry) const { return {work_.op(entry).op_id, place_of_(entry)}; }
  Path PathOf(Entries entries) const {
    Path path;
    for (const uint32_t entry : entries) {
      if (place_of_(entry) == 0 && NeedsLine(work_, entry)) return {};
      path.push_back(LineOf(entry));
    }
    return path;
  }

  // The work that a graph holds. On the interface the bounds of its capture are no work.
  std::vector<uint32_t> HeldBy(size_t g) const {
    std::vector<uint32_t> held = graphs_.graphs[g].held;
    if (work_.dialect == Dialect::kAcl) {
      std::erase_if(held, [&](uint32_t entry) { return !work_.form(entry).active(); });
    }
    return held;
  }

  // The buffers that entries outside of graphs read, in order of turns.
  void FindReads() {
    for (size_t turn = 0; turn < graphs_.turns.size(); ++turn) {
      if (graphs_.turns[turn].graph >= 0) continue;
      alone_.push_back(graphs_.turns[turn].entry);
      work_.VisitAccesses(graphs_.turns[turn].entry, [&](const ByteAccess& access) {
        if (!access.write) last_read_[access.buffer] = turn;
      });
    }
  }

  void FindIn(size_t g) {
    const std::vector<uint32_t> held = HeldBy(g);
    const Path path = PathOf(held);
    std::unordered_set<int32_t> functions;
    for (const uint32_t entry : held) functions.insert(function_of_(entry));
    functions.erase(0);
    const bool first_is_one = std::count(path.begin(), path.end(), path.front()) == 1;
    const bool last_is_one = std::count(path.begin(), path.end(), path.back()) == 1;
    std::vector<uint32_t> run;
    std::vector<Taken> all;
    std::map<Path, size_t> index_of;
    size_t runs = 0;
    const auto end_run = [&] {
      if (run.empty()) return;
      Path taken = PathOf(run);
      const auto known = index_of.find(taken);
      if (known != index_of.end()) {
        all[known->second].again.push_back({run.front(), run.back()});
      } else if (!taken.empty() && all.size() < kMostPaths) {
        index_of.emplace(taken, all.size());
        all.push_back({std::move(taken), run, {{run.front(), run.back()}}, runs == 0});
      }
      ++runs;
      run.clear();
    };
    // After its last line a run goes on if a line from inside of it follows: a loop turns again.
    const std::set<PathLine> lines(path.begin(), path.end());
    bool at_last = false;
    for (size_t turn = 0; turn < graphs_.turns.size(); ++turn) {
      const Turn& now = graphs_.turns[turn];
      if (now.graph >= 0 || !functions.contains(function_of_(now.entry))) {
        end_run();
        continue;
      }
      if (--budget_ < 0) return;
      const PathLine line = LineOf(now.entry);
      const bool begins = first_is_one && line == path.front();
      if (begins || (at_last && !lines.contains(line))) end_run();
      run.push_back(now.entry);
      at_last = last_is_one && line == path.back();
    }
    end_run();
    JudgeAll(g, held, path, all);
  }

  // A path that eager runs took.
  struct Taken {
    Path path;
    std::vector<uint32_t> entries;                     // the first such run
    std::vector<std::pair<uint32_t, uint32_t>> again;  // the first and last entry of each
    bool is_first = false;                             // no run came before it
  };

  void JudgeAll(size_t g, Entries held, const Path& path, const std::vector<Taken>& all) {
    const OwnGraph& graph = graphs_.graphs[g];
    RunOrder order;
    std::vector<const Taken*> others;
    for (const Taken& taken : all) {
      if (taken.path == path && work_.calls[taken.entries.front()].call_id < graph.begin_call) {
        order.first_equal = taken.entries.front();
      }
      if (captured_.contains(taken.path) || IsBeside(taken, graph)) continue;
      if (!Differs(g, held, path, taken)) continue;
      ++order.other_kinds;
      order.last_other = std::max(order.last_other, taken.again.back().first);
      others.push_back(&taken);
    }
    if (!others.empty() && !IsOneChange(order)) AddRow(g, held, path, *others.front());
  }

  bool IsBeside(const Taken& taken, const OwnGraph& graph) {
    return std::any_of(taken.again.begin(), taken.again.end(), [&](const auto& ends) {
      const auto from = std::lower_bound(alone_.begin(), alone_.end(), ends.first);
      const auto to = std::upper_bound(from, alone_.end(), ends.second);
      return eager_use_.IsBeside({from, to}, graph);
    });
  }

  // True if the run took another branch than the capture.
  bool Differs(size_t g, Entries held, const Path& path, const Taken& taken) const {
    const Entries run = taken.entries;
    const Parting parting = PartingOf(path, taken.path);
    if (parting.front + parting.back == 0) return false;
    const Entries of_graph = Middle(held, parting), of_run = Middle(run, parting);
    if (taken.is_first && of_graph.empty()) return false;  // it makes what later runs use
    if (IsBackward(of_graph) || IsBackward(of_run)) return false;
    if (IsForCaptures(of_graph)) return false;
    if (!IsBranch(path, taken.path, parting, of_graph, of_run)) return false;
    if (CommonEntry(held, parting, of_graph, of_run) < 0) return false;
    if (!HaveEqualInputs(held, run, parting)) return false;
    return Matters(held, run, parting, graphs_.graphs[g].executed.front(),
                   IsRepeated(taken.path, parting.front, of_run.size()));
  }

  void AddRow(size_t g, Entries held, const Path& path, const Taken& taken) {
    const Parting parting = PartingOf(path, taken.path);
    const Entries of_graph = Middle(held, parting), of_run = Middle(taken.entries, parting);
    const int64_t common = CommonEntry(held, parting, of_graph, of_run);
    rows_.push_back({g, of_graph.empty() ? -1 : static_cast<int64_t>(of_graph.front()),
                     of_run.empty() ? -1 : static_cast<int64_t>(of_run.front()),
                     static_cast<uint32_t>(common), of_graph.size(), of_run.size()});
  }

  bool IsBackward(Entries entries) const {
    return std::any_of(entries.begin(), entries.end(), [&](uint32_t entry) {
      return work_.calls[entry].phase != storage::Phase::kForward;
    });
  }

  // True if the program updates work of this branch, in a task group: it asked whether a capture is
  // active, and no eager run can take the branch.
  bool IsForCaptures(Entries of_graph) const {
    return std::any_of(of_graph.begin(), of_graph.end(),
                       [&](uint32_t entry) { return graphs_.updatable[entry] != 0; });
  }

  bool HasDropout(Entries entries) const {
    return std::any_of(entries.begin(), entries.end(), [&](uint32_t entry) {
      return work_.op(entry).name.find(kDropout) != std::string::npos;
    });
  }

  // Different work of one line comes from the framework, which keeps what a first call made.
  bool IsBranch(const Path& path, const Path& taken, const Parting& parting, Entries of_graph,
                Entries of_run) const {
    const auto places = [](const Path& lines) {
      std::set<int32_t> all;
      for (const PathLine& line : lines) all.insert(line.second);
      return all;
    };
    const std::set<int32_t> in_graph = places(path), in_run = places(taken);
    const auto lacks = [&](Entries entries, const std::set<int32_t>& other) {
      return std::any_of(entries.begin(), entries.end(),
                         [&](uint32_t entry) { return !other.contains(place_of_(entry)); });
    };
    if (lacks(of_graph, in_run) || lacks(of_run, in_graph)) return true;
    if (HasDropout(of_graph) != HasDropout(of_run)) return true;
    return of_graph.empty() ? IsRepeated(taken, parting.front, of_run.size())
                            : of_run.empty() && IsRepeated(path, parting.front, of_graph.size());
  }

  // True if the `count` lines from `first` on are whole turns of a loop that stand in front of them
  // once more.
  static bool IsRepeated(const Path& path, size_t first, size_t count) {
    for (size_t turn = 1; turn <= count && turn <= first; ++turn) {
      if (count % turn != 0) continue;
      bool equal = true;
      for (size_t i = 0; equal && i < count; ++i) {
        equal = path[first + i] == path[first + i - turn];
      }
      if (equal) return true;
    }
    return false;
  }

  // A held entry beside the parting, of the function in which it lies: the two ran one function.
  int64_t CommonEntry(Entries held, const Parting& parting, Entries of_graph,
                      Entries of_run) const {
    const auto function = function_of_(of_graph.empty() ? of_run.front() : of_graph.front());
    if (function == 0) return -1;
    for (size_t i = parting.front; i-- > 0;) {
      if (function_of_(held[i]) == function) return held[i];
    }
    for (size_t i = held.size() - parting.back; i < held.size(); ++i) {
      if (function_of_(held[i]) == function) return held[i];
    }
    return -1;
  }

  // Compares the shapes of what the common entries take from outside of their run. Where they take
  // nothing, the entries at the parting have to take a tensor of equal shape.
  bool HaveEqualInputs(Entries held, Entries run, const Parting& parting) const {
    std::unordered_set<int64_t> made_held, made_run;
    bool any = false;
    const auto compare = [&](size_t i, size_t j) {
      const std::vector<int64_t> a = InputsOf(held[i], made_held), b = InputsOf(run[j], made_run);
      any = any || !a.empty();
      return a == b;
    };
    for (size_t i = 0; i < parting.front; ++i) {
      if (!compare(i, i)) return false;
    }
    std::set<int64_t> middle_held, middle_run;
    for (const uint32_t entry : Middle(held, parting)) {
      for (const int64_t layout : InputsOf(entry, made_held)) middle_held.insert(layout);
    }
    for (const uint32_t entry : Middle(run, parting)) {
      for (const int64_t layout : InputsOf(entry, made_run)) middle_run.insert(layout);
    }
    for (size_t i = parting.back; i > 0; --i) {
      if (!compare(held.size() - i, run.size() - i)) return false;
    }
    return any || std::any_of(middle_held.begin(), middle_held.end(),
                              [&](int64_t layout) { return middle_run.contains(layout); });
  }

  // The layouts of what an entry takes from outside of its run; marks what it makes.
  // A launch of a Triton kernel has none: on the host it has other arguments than in a capture.
  std::vector<int64_t> InputsOf(uint32_t entry, std::unordered_set<int64_t>& made) const {
    std::vector<int64_t> layouts, results;
    if (IsLaunchOfKernel(work_.op(entry))) return layouts;
    std::set<int64_t> taken;
    const std::span<const int64_t> buffers = work_.buffers(entry);
    for (const storage::SignatureArgument& argument : *work_.form(entry).arguments) {
      for (const storage::SlotRef& tensor : argument.tensors) {
        const auto slot = static_cast<size_t>(tensor.slot);
        if (!tensor.has_buffer() || slot >= buffers.size()) continue;
        if (argument.direction == storage::Direction::kOut) {
          results.push_back(buffers[slot]);
        } else {
          taken.insert(buffers[slot]);
          if (!made.contains(buffers[slot])) layouts.push_back(tensor.layout_id);
        }
      }
    }
    for (const int64_t buffer : results) {
      if (!taken.contains(buffer)) made.insert(buffer);
    }
    return layouts;
  }

  // True if the rest of the run, or the program, needs what only one side does.
  bool Matters(Entries held, Entries run, const Parting& parting, size_t execution,
               bool repeated) const {
    const Entries of_graph = Middle(held, parting), of_run = Middle(run, parting);
    if (!of_graph.empty() && !of_run.empty()) return true;
    const Entries whole = of_graph.empty() ? run : held;
    const Entries extra = of_graph.empty() ? of_run : of_graph;
    const std::unordered_set<int64_t> made = WrittenBy(extra);
    for (size_t i = whole.size() - parting.back; i < whole.size(); ++i) {
      bool needs = false;
      work_.VisitAccesses(whole[i], [&](const ByteAccess& access) {
        needs = needs || (!access.write && made.contains(access.buffer));
      });
      if (needs) return true;
    }
    if (parting.back != 0) return false;
    // At the end of a run more work may be a measure beside its result, unless it is one more turn.
    if (of_graph.empty()) return repeated;
    // The program reads what the graph alone makes there, and not what stands before it.
    const auto read_later = [&](const std::unordered_set<int64_t>& buffers) {
      return std::any_of(buffers.begin(), buffers.end(), [&](int64_t buffer) {
        const auto read = last_read_.find(buffer);
        return read != last_read_.end() && read->second > execution;
      });
    };
    return read_later(made) && !read_later(WrittenBy(whole.first(parting.front)));
  }

  std::unordered_set<int64_t> WrittenBy(Entries entries) const {
    std::unordered_set<int64_t> buffers;
    for (const uint32_t entry : entries) {
      work_.VisitAccesses(entry, [&](const ByteAccess& access) {
        if (access.write) buffers.insert(access.buffer);
      });
    }
    return buffers;
  }

  const OwnGraphs& graphs_;
  const Work& work_;
  const std::function<int32_t(size_t)>& place_of_;
  const std::function<int32_t(size_t)>& function_of_;
  EagerUse eager_use_;
  std::vector<uint32_t> alone_;  // entries that ran alone, in order
  std::set<Path> captured_;
  std::unordered_map<int64_t, size_t> last_read_;  // turns of entries that ran alone, by buffer
  int64_t budget_ = kMostBranchEntries;
  std::vector<BakedBranch> rows_;
};

}  // namespace

std::vector<BakedBranch> FindBakedBranches(const OwnGraphs& graphs,
                                           const std::function<int32_t(size_t)>& place_of,
                                           const std::function<int32_t(size_t)>& function_of) {
  return BranchFinder(graphs, place_of, function_of).Find();
}

}  // namespace acltape::analyzer::executions
