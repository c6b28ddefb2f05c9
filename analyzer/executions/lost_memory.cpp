#include "analyzer/executions/lost_memory.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "analyzer/calls/byte_map.h"
#include "analyzer/calls/byte_set.h"

namespace acltape::analyzer::executions {
namespace {

using storage::Buffer;

// The entry, and the storage through which it wrote bytes last.
struct Writer {
  int64_t buffer = 0;
  int64_t entry = 0;
};

bool IsDeadAt(const Buffer& buffer, int64_t ns) {
  return buffer.free_ns != 0 && buffer.free_ns <= ns;
}

// One use of a graph whose storage ended before an execution.
struct Suspect {
  int32_t graph = 0;
  bool write = false;
  GraphUse use;
  const Buffer* buffer = nullptr;
  std::vector<const Buffer*> sharers;  // other storages of the same memory, in no order
  int64_t writer_at_capture = 0;       // the storage through which the bytes were written, 0: none
  size_t row = SIZE_MAX;               // in the result
};

class LostMemoryFinder {
 public:
  explicit LostMemoryFinder(const OwnGraphs& graphs)
      : graphs_(graphs), work_(*graphs.work), trace_(*graphs.work->trace) {}

  std::vector<LostMemory> Find() {
    FindSuspects();
    if (suspects_.empty()) return {};
    first_ = FirstEntries(work_);
    LeaveOutPools();
    FindSharers();
    Walk();
    return std::move(rows_);
  }

 private:
  int64_t FirstAddress(const Suspect& suspect) const {
    return suspect.buffer->address + suspect.use.first;
  }
  int64_t EndAddress(const Suspect& suspect) const {
    return suspect.buffer->address + suspect.use.end;
  }

  void FindSuspects() {
    for (size_t g = 0; g < graphs_.graphs.size(); ++g) {
      const OwnGraph& graph = graphs_.graphs[g];
      if (graph.executed.empty()) continue;
      const int64_t last = graphs_.turns[graph.executed.back()].begin_ns;
      std::set<int64_t> told;  // the storages of this graph: one use of each is enough
      const auto add = [&](const std::vector<GraphUse>& uses, bool write) {
        for (const GraphUse& use : uses) {
          const Buffer& buffer = trace_.GetBuffer(use.buffer);
          if (buffer.device == 0 || buffer.address == 0 || !IsDeadAt(buffer, last)) continue;
          if (!told.insert(use.buffer).second) continue;
          suspects_.push_back({static_cast<int32_t>(g), write, use, &buffer, {}, 0, SIZE_MAX});
        }
      };
      add(graphs_.graphs[g].footprint.reads, false);
      add(graphs_.graphs[g].footprint.writes, true);
      add(graphs_.graphs[g].footprint.hidden_reads, false);
    }
    for (const Suspect& suspect : suspects_) {
      watched_.Add(FirstAddress(suspect), EndAddress(suspect));
      last_writer_.emplace(suspect.use.buffer, -1);
    }
  }

  // The allocator gives the memory of a graph's pool to no tensor from outside of a capture. Who
  // has another tensor there made it himself from the address, as compilers do for their inputs.
  void LeaveOutPools() {
    std::set<int64_t> pools;  // blocks of the device
    for (const auto& [id, entry] : first_) {
      if (graphs_.graph_of[entry] < 0) continue;
      const Buffer& buffer = trace_.GetBuffer(id);
      if (buffer.device != 0 && buffer.block_id != 0) pools.insert(buffer.block_id);
    }
    std::erase_if(suspects_,
                  [&](const Suspect& suspect) { return pools.contains(suspect.buffer->block_id); });
  }

  bool IsWatched(const Buffer& buffer) const {
    return buffer.device != 0 && buffer.address != 0 &&
           !watched_.Within(buffer.address, buffer.address + buffer.bytes).empty();
  }

  void FindSharers() {
    std::set<int64_t> seen;
    std::vector<const Buffer*> near;
    for (const int64_t id : work_.all_buffers) {
      if (id == 0 || !seen.insert(id).second) continue;
      const Buffer& buffer = trace_.GetBuffer(id);
      if (IsWatched(buffer)) near.push_back(&buffer);
    }
    std::sort(near.begin(), near.end(),
              [](const Buffer* a, const Buffer* b) { return a->address < b->address; });
    int64_t longest = 0;
    for (const Buffer* buffer : near) longest = std::max(longest, buffer->bytes);
    for (Suspect& suspect : suspects_) {
      const int64_t first = FirstAddress(suspect);
      auto one = std::lower_bound(
          near.begin(), near.end(), first - longest,
          [](const Buffer* buffer, int64_t address) { return buffer->address < address; });
      for (; one != near.end() && (*one)->address < EndAddress(suspect); ++one) {
        if ((*one)->buffer_id == suspect.use.buffer) continue;
        if ((*one)->address + (*one)->bytes > first) suspect.sharers.push_back(*one);
      }
    }
    for (size_t i = 0; i < suspects_.size(); ++i) {
      by_graph_[suspects_[i].graph].push_back(i);
      if (!suspects_[i].write) by_entry_[suspects_[i].use.entry].push_back(i);
    }
  }

  // Goes through the entries as they were captured or ran, and the executions.
  void Walk() {
    size_t turn = 0;
    const auto execute_before = [&](int64_t call_id) {
      for (; turn < graphs_.turns.size() && graphs_.turns[turn].call_id < call_id; ++turn) {
        if (graphs_.turns[turn].graph >= 0) Execute(static_cast<uint32_t>(turn));
      }
    };
    for (size_t i = 0; i < work_.size(); ++i) {
      execute_before(work_.calls[i].call_id);
      if (graphs_.graph_of[i] == OwnGraphs::kUpdate) continue;
      if (const auto reads = by_entry_.find(static_cast<uint32_t>(i)); reads != by_entry_.end()) {
        for (const size_t index : reads->second) NoteWriterAtCapture(suspects_[index]);
      }
      NoteWrites(static_cast<uint32_t>(i));
    }
    execute_before(INT64_MAX);
  }

  void NoteWrites(uint32_t entry) {
    work_.VisitAccesses(entry, [&](const ByteAccess& access) {
      if (!access.write) return;
      const auto ending = last_writer_.find(access.buffer);
      if (ending != last_writer_.end()) ending->second = entry;
      const Buffer& buffer = trace_.GetBuffer(access.buffer);
      if (buffer.device == 0 || buffer.address == 0) return;
      const int64_t first = buffer.address + access.first, end = buffer.address + access.end;
      for (const ByteRange& part : watched_.Within(first, end)) {
        writers_.Set(part.first, part.end, {access.buffer, entry});
      }
    });
  }

  void NoteWriterAtCapture(Suspect& suspect) {
    writers_.Within(FirstAddress(suspect), EndAddress(suspect),
                    [&](int64_t, int64_t, const Writer& writer) {
                      if (suspect.writer_at_capture == 0) suspect.writer_at_capture = writer.buffer;
                    });
  }

  void Execute(uint32_t turn) {
    const int32_t graph = graphs_.turns[turn].graph;
    if (const auto suspects = by_graph_.find(graph); suspects != by_graph_.end()) {
      for (const size_t index : suspects->second) Check(suspects_[index], turn);
    }
    for (const uint32_t entry : graphs_.graphs[graph].held) NoteWrites(entry);
  }

  // True if the leaf that names the storage first took memory for it. The allocator gives out no
  // memory that a tensor still has: the end of that one was noticed late.
  bool TookItsMemory(const Buffer& buffer, const Buffer& ended) const {
    if (buffer.alloc_ns <= ended.alloc_ns) return false;
    const auto first = first_.find(buffer.buffer_id);
    if (first == first_.end() || work_.calls[first->second].call_id != buffer.alloc_call) {
      return false;
    }
    bool makes = work_.form(first->second).kind == LeafKind::kAllocation;
    work_.VisitAccesses(first->second, [&](const ByteAccess& access) {
      makes = makes || (access.write && access.buffer == buffer.buffer_id);
    });
    return makes;
  }

  bool MadeInACapture(const Buffer& buffer) const {
    const auto first = first_.find(buffer.buffer_id);
    return first != first_.end() && graphs_.graph_of[first->second] >= 0;
  }

  void Check(Suspect& suspect, uint32_t turn) {
    const int64_t now = graphs_.turns[turn].begin_ns;
    const Buffer& ended = *suspect.buffer;
    if (!IsDeadAt(ended, now)) return;
    const bool shared =
        std::any_of(suspect.sharers.begin(), suspect.sharers.end(), [&](const Buffer* other) {
          return other->alloc_ns < ended.free_ns && !IsDeadAt(*other, now) &&
                 !TookItsMemory(*other, ended);
        });
    if (shared) return;
    int64_t maker = -1;
    int64_t new_owner = -1;
    writers_.Within(FirstAddress(suspect), EndAddress(suspect),
                    [&](int64_t, int64_t, const Writer& writer) {
                      if (writer.buffer == ended.buffer_id) {
                        maker = writer.entry;
                      } else if (IsNewOwner(suspect, trace_.GetBuffer(writer.buffer), now)) {
                        new_owner = writer.entry;
                      }
                    });
    // Memory that a graph writes is its own result. It is lost once another tensor has it.
    if (new_owner < 0 && (suspect.write || MadeInACapture(ended))) return;
    // A graph that has made these bytes before gives them to this one.
    if (new_owner < 0 && maker >= 0 && graphs_.graph_of[maker] >= 0) return;
    if (new_owner < 0 && maker < 0 && suspect.writer_at_capture != 0) return;
    if (suspect.row == SIZE_MAX) {
      suspect.row = rows_.size();
      LostMemory row;
      row.execution = turn;
      row.user = suspect.use.entry;
      row.write = suspect.write;
      row.maker = last_writer_.at(ended.buffer_id);
      row.new_owner = new_owner;
      rows_.push_back(row);
    }
    ++rows_[suspect.row].executions;
  }

  // True if the allocator gave the memory to this storage after the ended one.
  bool IsNewOwner(const Suspect& suspect, const Buffer& other, int64_t now) const {
    if (other.buffer_id == suspect.writer_at_capture) return false;
    if (other.alloc_ns < suspect.buffer->free_ns && !TookItsMemory(other, *suspect.buffer)) {
      return false;
    }
    return !suspect.write || (!IsDeadAt(other, now) && !MadeInACapture(other));
  }

  const OwnGraphs& graphs_;
  const Work& work_;
  const storage::Reader& trace_;
  std::vector<Suspect> suspects_;
  ByteSet watched_;                                   // addresses of the device
  ByteMap<Writer> writers_;                           // by address
  std::unordered_map<int64_t, uint32_t> first_;       // entries, by buffer
  std::unordered_map<int64_t, int64_t> last_writer_;  // entries, by storage that ends
  std::unordered_map<int32_t, std::vector<size_t>> by_graph_;
  std::unordered_map<uint32_t, std::vector<size_t>> by_entry_;  // reads, by held entry
  std::vector<LostMemory> rows_;
};

}  // namespace

std::vector<LostMemory> FindLostMemory(const OwnGraphs& graphs) {
  return LostMemoryFinder(graphs).Find();
}

}  // namespace acltape::analyzer::executions
