#include "analyzer/executions/warm_state.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace acltape::analyzer::executions {
namespace {

// Parts of the names of operators that write the elements which an index, a mask or a place in the
// sequence names.
constexpr std::string_view kByPlace[] = {"index", "scatter", "masked", "put", "cache"};

// Parts of the names of operators of the interface that trainings have.
constexpr std::string_view kOfTraining[] = {"backward", "grad", "adam", "apply"};

template <size_t kParts>
bool HasPart(std::string name, const std::string_view (&parts)[kParts]) {
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char letter) { return std::tolower(letter); });
  return std::any_of(std::begin(parts), std::end(parts),
                     [&](std::string_view part) { return name.find(part) != std::string::npos; });
}

using UpdateLine = std::pair<int64_t, int32_t>;  // operator and place

class WarmStateFinder {
 public:
  WarmStateFinder(const OwnGraphs& graphs, const std::function<int32_t(size_t)>& place_of)
      : graphs_(graphs), work_(*graphs.work), place_of_(place_of) {}

  std::vector<WarmState> Find() {
    for (size_t g = 0; g < graphs_.graphs.size(); ++g) {
      const OwnGraph& graph = graphs_.graphs[g];
      if (graph.executed.empty() || Trains(graph)) continue;
      FindIn(graph, graphs_.graphs[g].footprint);
    }
    return std::move(rows_);
  }

 private:
  // Calls of the interface have no phase. A framework issues backward work from a thread that runs
  // no Python: its launches have no line beside those that have one.
  bool Trains(const OwnGraph& graph) const {
    return std::any_of(graph.held.begin(), graph.held.end(), [&](uint32_t entry) {
      if (work_.form(entry).acl_kind() == AclCallKind::kOperator) {
        return place_of_(entry) == 0 || HasPart(work_.op(entry).name, kOfTraining);
      }
      return work_.calls[entry].phase != storage::Phase::kForward;
    });
  }

  UpdateLine LineOf(uint32_t entry) const { return {work_.op(entry).op_id, place_of_(entry)}; }

  // A use of bytes by an entry that ran alone. All are found at the first question. A buffer has
  // few different ranges, also where it is the pool of a framework.
  struct Use {
    uint32_t turn = 0;
    uint32_t entry = 0;
    bool write = false;
  };
  using Range = std::pair<int64_t, int64_t>;
  void IndexUses() {
    if (indexed_) return;
    indexed_ = true;
    for (size_t turn = 0; turn < graphs_.turns.size(); ++turn) {
      if (graphs_.turns[turn].graph >= 0) continue;
      const uint32_t entry = graphs_.turns[turn].entry;
      work_.VisitAccesses(entry, [&](const ByteAccess& access) {
        uses_[access.buffer][{access.first, access.end}].push_back(
            {static_cast<uint32_t>(turn), entry, access.write});
      });
    }
  }

  // The lists of uses that touch some of the bytes. Each is in order of turns.
  std::vector<const std::vector<Use>*> UsesOf(int64_t buffer, int64_t first, int64_t end) {
    IndexUses();
    std::vector<const std::vector<Use>*> found;
    for (const auto& [range, uses] : uses_[buffer]) {
      if (range.first >= end) break;
      if (range.second > first) found.push_back(&uses);
    }
    return found;
  }

  // The writes of bytes before a turn, in order of turns.
  std::vector<Use> WritesBefore(uint32_t turn, const GraphUse& bytes) {
    std::vector<Use> writes;
    for (const std::vector<Use>* uses : UsesOf(bytes.buffer, bytes.first, bytes.end)) {
      for (const Use& use : *uses) {
        if (use.write && use.turn <= turn) writes.push_back(use);
      }
    }
    std::stable_sort(writes.begin(), writes.end(),
                     [](const Use& a, const Use& b) { return a.turn < b.turn; });
    return writes;
  }

  void FindIn(const OwnGraph& graph, const Footprint& footprint) {
    std::map<std::pair<int64_t, int64_t>, const GraphUse*> reads;  // by buffer and first byte
    for (const GraphUse& use : footprint.reads) reads[{use.buffer, use.first}] = &use;
    for (const GraphUse& write : footprint.writes) {
      auto read = reads.lower_bound({write.buffer, write.end});
      if (read == reads.begin()) continue;
      --read;  // the last one that begins before the write ends; the ranges do not overlap
      if (read->second->buffer != write.buffer || read->second->end <= write.first) continue;
      if (write.strided || read->second->strided) continue;
      if (HasPart(work_.op(write.entry).name, kByPlace) || place_of_(write.entry) == 0) continue;
      Check(graph, footprint, write);
    }
  }

  void Check(const OwnGraph& graph, const Footprint& footprint, const GraphUse& write) {
    const uint32_t first = graph.executed.front();
    const UpdateLine line = LineOf(write.entry);
    WarmState row{first, write.entry, 0, 0};
    uint32_t last = 0;  // the turn of the last warm-up
    for (const Use& use : WritesBefore(first, write)) {
      if (LineOf(use.entry) == line && graphs_.turns[use.turn].call_id < graph.begin_call) {
        ++row.warm_ups;
        row.warm_up = use.entry;
        last = use.turn;
      } else {
        row.warm_ups = 0;  // the program sets it, or goes on with it on purpose
      }
    }
    if (row.warm_ups == 0 || IsUsed(graph, footprint, write, last)) return;
    rows_.push_back(row);
  }

  // True if the program read what the run gave back: then it was no warm-up. What a graph gives
  // back is what entries outside of it read after an execution.
  bool IsUsed(const OwnGraph& graph, const Footprint& footprint, const GraphUse& state,
              uint32_t warm_up) {
    std::set<UpdateLine> inside;
    for (const uint32_t entry : graph.held) inside.insert(LineOf(entry));
    const auto read_between = [&](int64_t buffer, int64_t first, int64_t end, uint32_t from,
                                  uint32_t to) {
      const auto lists = UsesOf(buffer, first, end);
      return std::any_of(lists.begin(), lists.end(), [&](const std::vector<Use>* uses) {
        auto use = std::upper_bound(uses->begin(), uses->end(), from,
                                    [](uint32_t turn, const Use& one) { return turn < one.turn; });
        for (; use != uses->end() && use->turn < to; ++use) {
          if (!use->write && !inside.contains(LineOf(use->entry))) return true;
        }
        return false;
      });
    };
    const uint32_t first = graph.executed.front();
    if (read_between(state.buffer, state.first, state.end, warm_up, first)) return true;
    // The entries of the warm-up that made what the graph gives back.
    std::set<UpdateLine> given;
    for (const GraphUse& use : footprint.writes) {
      const bool of_state =
          use.buffer == state.buffer && use.first < state.end && state.first < use.end;
      if (!of_state && read_between(use.buffer, use.first, use.end, first, UINT32_MAX)) {
        given.insert(LineOf(use.entry));
      }
    }
    if (given.empty()) return false;
    constexpr uint32_t kRunLength = 4096;  // turns that are looked at around the update
    const uint32_t from = warm_up > kRunLength ? warm_up - kRunLength : 0;
    const auto until =
        std::min<size_t>(graphs_.turns.size(), static_cast<size_t>(warm_up) + kRunLength);
    for (size_t turn = from; turn < until && turn < first; ++turn) {
      const Turn& now = graphs_.turns[turn];
      if (now.graph >= 0 || !given.contains(LineOf(now.entry))) continue;
      if (!OfTheSameRun(inside, static_cast<uint32_t>(turn), warm_up)) continue;
      bool used = false;
      work_.VisitAccesses(now.entry, [&](const ByteAccess& access) {
        if (access.write && read_between(access.buffer, access.first, access.end,
                                         static_cast<uint32_t>(turn), first)) {
          used = true;
        }
      });
      if (used) return true;
    }
    return false;
  }

  // True if only entries of the graph's lines lie between the two turns.
  bool OfTheSameRun(const std::set<UpdateLine>& inside, uint32_t a, uint32_t b) const {
    for (uint32_t turn = std::min(a, b); turn <= std::max(a, b); ++turn) {
      const Turn& now = graphs_.turns[turn];
      if (now.graph >= 0 || !inside.contains(LineOf(now.entry))) return false;
    }
    return true;
  }

  const OwnGraphs& graphs_;
  const Work& work_;
  const std::function<int32_t(size_t)>& place_of_;
  bool indexed_ = false;
  std::unordered_map<int64_t, std::map<Range, std::vector<Use>>> uses_;  // by buffer
  std::vector<WarmState> rows_;
};

}  // namespace

std::vector<WarmState> FindWarmState(const OwnGraphs& graphs,
                                     const std::function<int32_t(size_t)>& place_of) {
  return WarmStateFinder(graphs, place_of).Find();
}

}  // namespace acltape::analyzer::executions
