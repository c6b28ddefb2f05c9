#include "analyzer/executions/baked_arguments.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "analyzer/calls/byte_set.h"
#include "analyzer/executions/eager_use.h"
#include "analyzer/graph/variation.h"
#include "meaning/acl_operators.h"

namespace acltape::analyzer::executions {
namespace {

using RunLine = std::pair<int64_t, int32_t>;  // operator and place
using Run = std::vector<uint32_t>;            // entries

constexpr size_t kMostRuns = 64;  // different runs of one kind that are compared

bool IsList(storage::ValueKind kind) {
  return kind == storage::ValueKind::kIntList || kind == storage::ValueKind::kRealList ||
         kind == storage::ValueKind::kBoolList || kind == storage::ValueKind::kScalarList;
}

class BakedFinder {
 public:
  BakedFinder(const OwnGraphs& graphs, const std::function<int32_t(size_t)>& place_of)
      : graphs_(graphs),
        work_(*graphs.work),
        calls_(*graphs.calls),
        place_of_(place_of),
        eager_use_(graphs) {}

  std::vector<BakedArgument> Find() {
    // Graphs that hold the same lines. Most programs have many of few kinds.
    std::map<std::vector<RunLine>, std::vector<size_t>> kinds;
    for (size_t g = 0; g < graphs_.graphs.size(); ++g) {
      Run held;
      for (const uint32_t entry : graphs_.graphs[g].held) {
        if (IsCompared(entry)) held.push_back(entry);
      }
      std::vector<RunLine> lines = LinesOf(held);
      held_.push_back(std::move(held));
      if (!lines.empty()) kinds[std::move(lines)].push_back(g);
    }
    if (kinds.empty()) return {};
    for (const Turn& turn : graphs_.turns) {
      if (turn.graph < 0 && IsCompared(turn.entry)) alone_.push_back(turn.entry);
    }
    FindLaunches();
    for (const auto& [lines, alike] : kinds) FindIn(lines, alike);
    return std::move(rows_);
  }

 private:
  bool AreCalls() const { return &work_ == &calls_; }
  // Launches are compared where the entries are calls of the interface. Those that draw random
  // numbers have other operators in a capture, where the seed is a tensor.
  bool IsCompared(uint32_t entry) const {
    return !AreCalls() || (work_.form(entry).acl_kind() == AclCallKind::kOperator &&
                           work_.calls[entry].status == 0 && !DrawsNumbers(entry));
  }

  RunLine LineOf(uint32_t entry) const { return {work_.op(entry).op_id, place_of_(entry)}; }
  // Without lines an equal operator says nothing, and several in a row do.
  std::vector<RunLine> LinesOf(const Run& entries) const {
    constexpr size_t kFewest = 2;  // launches without a line
    std::vector<RunLine> lines;
    for (const uint32_t entry : entries) {
      const bool tells = AreCalls() ? entries.size() >= kFewest : !NeedsLine(work_, entry);
      if (place_of_(entry) == 0 && !tells) return {};
      lines.push_back(LineOf(entry));
    }
    return lines;
  }

  void FindLaunches() {
    if (AreCalls()) return;
    for (size_t i = 0; i < calls_.size(); ++i) {
      const WorkCall& call = calls_.calls[i];
      if (call.parent_id == 0 || call.status != 0) continue;
      if (calls_.form(i).acl_kind() != AclCallKind::kOperator) continue;
      const int64_t entry = work_.Find(call.parent_id);
      if (entry >= 0) launches_[static_cast<uint32_t>(entry)].push_back(static_cast<uint32_t>(i));
    }
  }

  // Tells runs with different arguments apart: the forms of the entries and of their launches. A
  // number that the program writes beside a tensor is an argument of the launch alone.
  std::vector<int32_t> FormsOf(const Run& run) const {
    std::vector<int32_t> forms;
    for (const uint32_t entry : run) {
      forms.push_back(work_.calls[entry].form);
      const auto launches = launches_.find(entry);
      if (launches == launches_.end()) continue;
      for (const uint32_t launch : launches->second) forms.push_back(calls_.calls[launch].form);
    }
    return forms;
  }

  void FindIn(const std::vector<RunLine>& lines, const std::vector<size_t>& alike) {
    const bool executed = std::any_of(alike.begin(), alike.end(), [&](size_t g) {
      return graphs_.graphs[g].executed.size() > 1;
    });
    if (!executed) return;
    std::vector<std::vector<Run>> runs;  // equal ones together, in order of the first of each
    std::map<std::vector<int32_t>, size_t> index_of;  // by forms
    for (Run& run : Matches(lines)) {
      const auto [known, is_new] = index_of.try_emplace(FormsOf(run), runs.size());
      if (is_new && runs.size() == kMostRuns) {
        index_of.erase(known);
        continue;
      }
      if (is_new) runs.emplace_back();
      runs[known->second].push_back(std::move(run));
    }
    std::map<size_t, std::vector<Run>> unserved;  // by graph
    std::map<size_t, RunOrder> orders;            // by graph
    for (const std::vector<Run>& equal : runs) {
      int64_t meant = -1;  // the first graph that the run could have been
      bool served = false;
      for (const size_t g : alike) {
        const OwnGraph& graph = graphs_.graphs[g];
        if (served || !HaveEqualInputs(held_[g], equal.front())) continue;
        if (meant < 0 && graph.executed.size() > 1) meant = static_cast<int64_t>(g);
        served = !Differ(g, {equal.front()});
        if (served && work_.calls[equal.front().front()].call_id < graph.begin_call) {
          uint32_t& first = orders[g].first_equal;
          first = std::min(first, equal.front().front());
        }
      }
      if (served || meant < 0) continue;
      const OwnGraph& graph = graphs_.graphs[static_cast<size_t>(meant)];
      const bool beside = std::any_of(equal.begin(), equal.end(), [&](const Run& run) {
        return eager_use_.IsBeside(run, graph);
      });
      if (beside) continue;
      RunOrder& order = orders[static_cast<size_t>(meant)];
      ++order.other_kinds;
      order.last_other = std::max(order.last_other, equal.back().front());
      unserved[static_cast<size_t>(meant)].push_back(equal.front());
    }
    for (const auto& [g, missed] : unserved) {
      if (IsOneChange(orders[g])) continue;
      std::vector<BakedArgument> rows = Compare(g, missed);
      rows_.insert(rows_.end(), rows.begin(), rows.end());
    }
  }

  bool Differ(size_t graph, const std::vector<Run>& runs) const {
    return !Compare(graph, runs).empty();
  }

  // The arguments in which a graph and the runs differ.
  std::vector<BakedArgument> Compare(size_t graph, const std::vector<Run>& runs) const {
    const Run& held = held_[graph];
    std::vector<BakedArgument> rows;
    std::set<size_t> told;  // places
    graph::StepFamily family = FamilyOf(held.size(), runs.size() + 1);
    family.calls = held;
    for (const Run& run : runs) family.calls.insert(family.calls.end(), run.begin(), run.end());
    for (const graph::ArgumentVariation& argument : graph::FindVaryingArguments(work_, family)) {
      if (!Counts(work_, argument, held[argument.place])) continue;
      const auto run = IndexOf(family, argument.second_call);
      rows.push_back(RowOf(work_, argument, graph, held[argument.place],
                           run == 0 ? held[argument.place] : runs[run - 1][argument.place]));
      told.insert(argument.place);
    }
    if (AreCalls()) return rows;
    // The launches, where a place has the same ones everywhere.
    std::vector<std::vector<uint32_t>> lists(runs.size() + 1);
    std::vector<size_t> place_of_launch;
    for (size_t place = 0; place < held.size(); ++place) {
      if (told.contains(place) || !HaveEqualLaunches(held, runs, place)) continue;
      const size_t count = launches_.at(held[place]).size();
      place_of_launch.insert(place_of_launch.end(), count, place);
      for (size_t r = 0; r < lists.size(); ++r) {
        const std::vector<uint32_t>& launches =
            launches_.at(r == 0 ? held[place] : runs[r - 1][place]);
        lists[r].insert(lists[r].end(), launches.begin(), launches.end());
      }
    }
    if (place_of_launch.empty()) return rows;
    graph::StepFamily of_calls = FamilyOf(place_of_launch.size(), lists.size());
    for (const auto& list : lists) {
      of_calls.calls.insert(of_calls.calls.end(), list.begin(), list.end());
    }
    for (const graph::ArgumentVariation& argument : graph::FindVaryingArguments(calls_, of_calls)) {
      const size_t place = place_of_launch[argument.place];
      if (!Counts(calls_, argument, held[place])) continue;
      const auto run = IndexOf(of_calls, argument.second_call);
      rows.push_back(RowOf(calls_, argument, graph, held[place],
                           run == 0 ? held[place] : runs[run - 1][place]));
    }
    return rows;
  }

  // The numbers of the runs have gaps, so that none counts as the one before another.
  static graph::StepFamily FamilyOf(size_t places, size_t runs) {
    graph::StepFamily family;
    family.places = places;
    for (size_t r = 0; r < runs; ++r) family.steps.push_back(2 * r);
    return family;
  }
  static size_t IndexOf(const graph::StepFamily& family, uint32_t call) {
    const auto found = std::find(family.calls.begin(), family.calls.end(), call);
    return static_cast<size_t>(found - family.calls.begin()) / family.places;
  }

  bool HaveEqualLaunches(const Run& held, const std::vector<Run>& runs, size_t place) const {
    const auto of_held = launches_.find(held[place]);
    if (of_held == launches_.end()) return false;
    return std::all_of(runs.begin(), runs.end(), [&](const Run& run) {
      const auto of_run = launches_.find(run[place]);
      return of_run != launches_.end() &&
             std::equal(of_held->second.begin(), of_held->second.end(), of_run->second.begin(),
                        of_run->second.end(), [&](uint32_t a, uint32_t b) {
                          return calls_.op(a).op_id == calls_.op(b).op_id;
                        });
    });
  }

  bool Counts(const Work& work, const graph::ArgumentVariation& argument, uint32_t entry) const {
    if (argument.kind == graph::VariationKind::kLayout || graphs_.updatable[entry] != 0) {
      return false;
    }
    // The launches of random numbers have seeds and offsets. What the program gives is the leaf's.
    if (DrawsNumbers(entry) && (AreCalls() || &work != &work_)) return false;
    return !(*work.form(argument.first_call).arguments)[argument.argument].HoldsTensors();
  }

  bool DrawsNumbers(uint32_t entry) const {
    if (!AreCalls()) return work_.form(entry).kind == LeafKind::kSource;
    return meaning::AclOperatorOf(work_.op(entry).name).randomness != meaning::Randomness::kNone;
  }

  BakedArgument RowOf(const Work& work, const graph::ArgumentVariation& argument, size_t graph,
                      uint32_t entry, uint32_t other) const {
    const auto [value, other_value] = graph::ShortValues(work, argument);
    const storage::ValueKind kind =
        (*work.form(argument.first_call).arguments)[argument.argument].kind;
    return {graph, entry, other, argument.name, value, other_value, argument.values, IsList(kind)};
  }

  // The eager entries that have the lines one after the other (Knuth, Morris and Pratt). Runs do
  // not overlap.
  std::vector<Run> Matches(const std::vector<RunLine>& lines) const {
    std::vector<size_t> borders(lines.size() + 1, 0);
    for (size_t i = 1, length = 0; i < lines.size(); ++i) {
      while (length > 0 && lines[i] != lines[length]) length = borders[length];
      if (lines[i] == lines[length]) ++length;
      borders[i + 1] = length;
    }
    std::vector<Run> matches;
    size_t matched = 0;
    for (size_t i = 0; i < alone_.size(); ++i) {
      const RunLine line = LineOf(alone_[i]);
      while (matched > 0 && line != lines[matched]) matched = borders[matched];
      if (line == lines[matched]) ++matched;
      if (matched < lines.size()) continue;
      matched = 0;
      const auto end = alone_.begin() + static_cast<std::ptrdiff_t>(i) + 1;
      matches.emplace_back(end - static_cast<std::ptrdiff_t>(lines.size()), end);
    }
    return matches;
  }

  bool HaveEqualInputs(const Run& held, const Run& run) const {
    if (AreCalls()) return ShapesOfInputs(held) == ShapesOfInputs(run);
    Made made_held, made_run;
    for (size_t i = 0; i < held.size(); ++i) {
      if (TakeInputs(held[i], made_held) != TakeInputs(run[i], made_run)) return false;
    }
    return true;
  }

  // The tensors that launches read and that no earlier one of their run made. A pool of a framework
  // gives equal tensors other places.
  std::vector<std::pair<storage::DType, std::vector<int64_t>>> ShapesOfInputs(
      const Run& run) const {
    std::vector<std::pair<storage::DType, std::vector<int64_t>>> shapes;
    std::unordered_map<int64_t, ByteSet> made;  // by buffer
    for (const uint32_t entry : run) {
      work_.VisitAccesses(entry, [&](const ByteAccess& access) {
        if (access.write || !made[access.buffer].Within(access.first, access.end).empty()) return;
        shapes.emplace_back(access.form->layout->dtype, access.form->layout->shape);
      });
      work_.VisitAccesses(entry, [&](const ByteAccess& access) {
        if (access.write) made[access.buffer].Add(access.first, access.end);
      });
    }
    return shapes;
  }

  // The tensors that a run has made: storages, and views of storages from outside.
  struct Made {
    std::set<int64_t> buffers;
    std::set<std::pair<int64_t, int64_t>> views;  // buffer and layout
  };

  // The layouts of an entry's tensors that no earlier entry of its run made.
  std::vector<int64_t> TakeInputs(uint32_t entry, Made& made) const {
    std::vector<int64_t> layouts;
    std::set<int64_t> taken;
    std::vector<std::pair<int64_t, int64_t>> results;
    const std::span<const int64_t> buffers = work_.buffers(entry);
    for (const storage::SignatureArgument& argument : *work_.form(entry).arguments) {
      for (const storage::SlotRef& tensor : argument.tensors) {
        const auto slot = static_cast<size_t>(tensor.slot);
        if (!tensor.has_buffer() || slot >= buffers.size()) continue;
        const std::pair<int64_t, int64_t> one{buffers[slot], tensor.layout_id};
        if (argument.direction == storage::Direction::kOut) {
          results.push_back(one);
          continue;
        }
        taken.insert(one.first);
        if (!made.buffers.contains(one.first) && !made.views.contains(one)) {
          layouts.push_back(one.second);
        }
      }
    }
    for (const auto& one : results) {
      if (taken.contains(one.first)) {
        made.views.insert(one);
      } else {
        made.buffers.insert(one.first);
      }
    }
    return layouts;
  }

  const OwnGraphs& graphs_;
  const Work& work_;
  const Work& calls_;
  const std::function<int32_t(size_t)>& place_of_;
  std::vector<Run> held_;  // by graph: the entries that are compared
  EagerUse eager_use_;
  std::vector<uint32_t> alone_;  // entries that ran alone, in order
  std::unordered_map<uint32_t, std::vector<uint32_t>> launches_;  // by entry
  std::vector<BakedArgument> rows_;
};

}  // namespace

std::vector<BakedArgument> FindBakedArguments(const OwnGraphs& graphs,
                                              const std::function<int32_t(size_t)>& place_of) {
  return BakedFinder(graphs, place_of).Find();
}

}  // namespace acltape::analyzer::executions
