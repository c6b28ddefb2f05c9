#include "analyzer/executions/missed_inputs.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace acltape::analyzer::executions {
namespace {

constexpr std::string_view kCopy = "aten::copy_";
constexpr int64_t kMostCompared = int64_t{1} << 26;  // tensors that are compared in all

// A use of a buffer by an entry that ran alone.
struct Use {
  uint32_t turn = 0;
  uint32_t entry = 0;
  bool write = false;
};

// A tensor that an entry makes and that nothing reads.
struct Unread {
  uint32_t turn = 0;
  uint32_t entry = 0;
  const storage::Layout* layout = nullptr;
};

class MissedInputFinder {
 public:
  MissedInputFinder(const OwnGraphs& graphs, const std::function<int32_t(size_t)>& place_of)
      : graphs_(graphs), work_(*graphs.work), trace_(*graphs.work->trace), place_of_(place_of) {}

  std::vector<MissedInput> Find() {
    const bool twice = std::any_of(
        graphs_.graphs.begin(), graphs_.graphs.end(),
        [](const OwnGraph& graph) { return graph.executed.size() >= kFewestExecutions; });
    if (!twice) return {};
    FindUses();
    for (const OwnGraph& graph : graphs_.graphs) {
      if (graph.executed.size() >= kFewestExecutions) FindIn(graph);
    }
    return std::move(rows_);
  }

 private:
  bool IsOnDevice(int64_t buffer) const { return trace_.GetBuffer(buffer).device != 0; }

  void FindUses() {
    for (const OwnGraph& graph : graphs_.graphs) {
      if (graph.executed.empty()) continue;
      for (const GraphUse& use : graph.footprint.writes) written_by_graphs_.insert(use.buffer);
      for (const GraphUse& use : graph.footprint.reads) read_by_graphs_.insert(use.buffer);
    }
    for (size_t turn = 0; turn < graphs_.turns.size(); ++turn) {
      const Turn& now = graphs_.turns[turn];
      if (now.graph >= 0) continue;
      work_.VisitAccesses(now.entry, [&](const ByteAccess& access) {
        uses_[access.buffer].push_back({static_cast<uint32_t>(turn), now.entry, access.write});
      });
      if (work_.form(now.entry).kind == LeafKind::kHostRead) {
        host_reads_.push_back(static_cast<uint32_t>(turn));
      }
    }
    const auto first = FirstEntries(work_);
    for (const auto& [buffer, uses] : uses_) {
      const bool read =
          std::any_of(uses.begin(), uses.end(), [](const Use& u) { return !u.write; });
      if (read || read_by_graphs_.contains(buffer) || !IsOnDevice(buffer)) continue;
      const Use& use = uses.front();
      if (first.at(buffer) > use.entry || ReadsTheDevice(use.entry)) continue;
      const storage::Layout* layout = nullptr;
      work_.VisitAccesses(use.entry, [&, id = buffer](const ByteAccess& access) {
        if (access.buffer == id) layout = access.form->layout;
      });
      if (layout != nullptr) unread_.push_back({use.turn, use.entry, layout});
    }
    std::sort(unread_.begin(), unread_.end(),
              [](const Unread& a, const Unread& b) { return a.turn < b.turn; });
  }

  bool ReadsTheDevice(uint32_t entry) const {
    bool reads = false;
    work_.VisitAccesses(entry, [&](const ByteAccess& access) {
      reads = reads || (!access.write && IsOnDevice(access.buffer));
    });
    return reads;
  }

  // The first turn after the capture of a graph.
  uint32_t AfterCapture(const OwnGraph& graph) const {
    const auto after =
        std::lower_bound(graphs_.turns.begin(), graphs_.turns.end(), graph.end_call,
                         [](const Turn& turn, int64_t call_id) { return turn.call_id < call_id; });
    return static_cast<uint32_t>(after - graphs_.turns.begin());
  }

  void FindIn(const OwnGraph& graph) {
    const uint32_t begin = AfterCapture(graph);
    std::set<int64_t> seen;
    std::vector<const GraphUse*> unfed;
    std::vector<const storage::Layout*> fed;
    for (const GraphUse& use : graph.footprint.reads) {
      if (use.access == nullptr || use.access->layout == nullptr) continue;
      if (!IsOnDevice(use.buffer) || written_by_graphs_.contains(use.buffer)) continue;
      if (!seen.insert(use.buffer).second) continue;
      const std::span<const Use> uses = UsesSince(use.buffer, begin);
      const bool written =
          std::any_of(uses.begin(), uses.end(), [](const Use& one) { return one.write; });
      if (!written) {
        unfed.push_back(&use);
        continue;
      }
      fed.push_back(use.access->layout);
      FindLate(graph, use, uses, begin);
    }
    FindUnfed(graph, unfed, fed, begin);
  }

  std::span<const Use> UsesSince(int64_t buffer, uint32_t begin) const {
    const auto all = uses_.find(buffer);
    if (all == uses_.end()) return {};
    const auto from =
        std::lower_bound(all->second.begin(), all->second.end(), begin,
                         [](const Use& use, uint32_t turn) { return use.turn < turn; });
    return {from, all->second.end()};
  }

  // An execution, a copy, an execution, a copy and so on; nothing reads the last one.
  void FindLate(const OwnGraph& graph, const GraphUse& input, std::span<const Use> uses,
                uint32_t begin) {
    std::vector<Use> copies;
    for (const Use& use : uses) {
      if (use.write) {
        copies.push_back(use);
      } else if (!copies.empty() && use.turn > copies.back().turn) {
        return;
      }
    }
    if (copies.size() != graph.executed.size()) return;
    const int32_t place = place_of_(copies.front().entry);
    std::vector<int64_t> sources;
    for (size_t round = 0; round < copies.size(); ++round) {
      const uint32_t execution = graph.executed[round];
      const uint32_t before = round == 0 ? begin : graph.executed[round - 1];
      const Use& copy = copies[round];
      if (copy.turn < execution || place == 0 || place_of_(copy.entry) != place) return;
      if (round + 1 < copies.size() && copy.turn > graph.executed[round + 1]) return;
      if (HostReadsBetween(execution, copy.turn)) return;
      const int64_t source = SourceOf(copy.entry, input.buffer);
      if (source == 0) return;
      if (!WrittenBetween(source, before, execution)) return;
      sources.push_back(source);
    }
    const std::unordered_set<int64_t> derived = DerivedFrom(graph);
    const auto is_derived = [&](int64_t source) { return derived.contains(source); };
    if (std::any_of(sources.begin(), sources.end(), is_derived)) return;
    rows_.push_back(
        {input.entry, copies.front().entry, graph.executed.front(), copies.size(), true});
  }

  // The tensor of the device that an entry copies; 0: it does something else.
  int64_t SourceOf(uint32_t entry, int64_t target) const {
    if (work_.op(entry).name != kCopy) return 0;
    int64_t source = 0;
    work_.VisitAccesses(entry, [&](const ByteAccess& access) {
      if (!access.write && access.buffer != target) source = access.buffer;
    });
    return source != 0 && IsOnDevice(source) ? source : 0;
  }

  bool WrittenBetween(int64_t buffer, uint32_t from, uint32_t to) const {
    const auto uses = uses_.find(buffer);
    return uses != uses_.end() &&
           std::any_of(uses->second.begin(), uses->second.end(), [&](const Use& use) {
             return use.write && use.turn >= from && use.turn < to;
           });
  }

  bool HostReadsBetween(uint32_t from, uint32_t to) const {
    const auto read = std::upper_bound(host_reads_.begin(), host_reads_.end(), from);
    return read != host_reads_.end() && *read < to;
  }

  // Tensors that eager entries compute from results of the graph.
  std::unordered_set<int64_t> DerivedFrom(const OwnGraph& graph) const {
    std::unordered_set<int64_t> derived;
    for (const GraphUse& use : graph.footprint.writes) derived.insert(use.buffer);
    for (size_t turn = graph.executed.front(); turn < graphs_.turns.size(); ++turn) {
      if (graphs_.turns[turn].graph >= 0) continue;
      bool reads = false;
      const uint32_t entry = graphs_.turns[turn].entry;
      work_.VisitAccesses(entry, [&](const ByteAccess& access) {
        reads = reads || (!access.write && derived.contains(access.buffer));
      });
      if (!reads) continue;
      work_.VisitAccesses(entry, [&](const ByteAccess& access) {
        if (access.write) derived.insert(access.buffer);
      });
    }
    return derived;
  }

  // Tensors like an input into which nothing is written; made from one line, in several rounds.
  void FindUnfed(const OwnGraph& graph, const std::vector<const GraphUse*>& unfed,
                 const std::vector<const storage::Layout*>& fed, uint32_t begin) {
    const auto is_like = [](const storage::Layout& a, const storage::Layout& b) {
      return a.shape == b.shape && a.dtype == b.dtype;
    };
    const int64_t last_ns = graphs_.turns[graph.executed.back()].begin_ns;
    std::map<int32_t, std::pair<const Unread*, std::set<size_t>>> rounds;  // by place
    if (unfed.empty()) return;
    auto next_made =
        std::lower_bound(unread_.begin(), unread_.end(), begin,
                         [](const Unread& made, uint32_t turn) { return made.turn < turn; });
    for (; next_made != unread_.end() && next_made->turn < graph.executed.back(); ++next_made) {
      if (--budget_ < 0) return;
      const Unread& made = *next_made;
      const int32_t place = place_of_(made.entry);
      if (place == 0) continue;
      const auto next = std::lower_bound(graph.executed.begin(), graph.executed.end(), made.turn);
      auto& [first, in] = rounds[place];
      if (first == nullptr) first = &made;
      in.insert(static_cast<size_t>(next - graph.executed.begin()));
    }
    for (const auto& [place, made] : rounds) {
      const Unread* first = made.first;
      const auto& in = made.second;
      if (in.size() < kFewestExecutions || in.size() + 1 < graph.executed.size()) continue;
      if (std::any_of(fed.begin(), fed.end(),
                      [&](const auto* layout) { return is_like(*layout, *first->layout); })) {
        continue;
      }
      const auto input = std::find_if(unfed.begin(), unfed.end(), [&](const GraphUse* use) {
        const storage::Buffer& buffer = trace_.GetBuffer(use->buffer);
        const bool ended = buffer.free_ns != 0 && buffer.free_ns <= last_ns;
        return !ended && is_like(*use->access->layout, *first->layout);
      });
      if (input == unfed.end()) continue;
      rows_.push_back({(*input)->entry, first->entry, graph.executed.front(), in.size(), false});
    }
  }

  const OwnGraphs& graphs_;
  const Work& work_;
  const storage::Reader& trace_;
  const std::function<int32_t(size_t)>& place_of_;
  std::unordered_set<int64_t> written_by_graphs_, read_by_graphs_;  // buffers
  std::unordered_map<int64_t, std::vector<Use>> uses_;              // by buffer
  std::vector<uint32_t> host_reads_;                                // turns
  std::vector<Unread> unread_;                                      // in order of turns
  int64_t budget_ = kMostCompared;
  std::vector<MissedInput> rows_;
};

}  // namespace

std::vector<MissedInput> FindMissedInputs(const OwnGraphs& graphs,
                                          const std::function<int32_t(size_t)>& place_of) {
  return MissedInputFinder(graphs, place_of).Find();
}

}  // namespace acltape::analyzer::executions
