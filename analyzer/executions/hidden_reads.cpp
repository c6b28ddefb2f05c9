#include "analyzer/executions/hidden_reads.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "analyzer/calls/byte_set.h"
#include "meaning/torch_operators.h"

namespace acltape::analyzer::executions {
namespace {

using K = AclCallKind;
using Range = std::pair<int64_t, int64_t>;  // addresses of the device

class HiddenReadFinder {
 public:
  explicit HiddenReadFinder(OwnGraphs& graphs)
      : graphs_(graphs), work_(*graphs.work), calls_(*graphs.calls), trace_(*calls_.trace) {}

  void Find() {
    for (size_t g = 0; g < graphs_.graphs.size(); ++g) {
      if (!graphs_.graphs[g].executed.empty()) graph_of_[graphs_.graphs[g].model_id] = g;
    }
    if (graph_of_.empty()) return;
    FindTensors();
    for (size_t i = 0; i < calls_.size(); ++i) Take(i);
    for (const Read& read : reads_) {
      const auto updates = read_by_updates_.find(read.group);
      if (read.group != 0 && updates != read_by_updates_.end() &&
          !updates->second.contains(read.range)) {
        continue;
      }
      graphs_.graphs[read.graph].footprint.hidden_reads.push_back(read.use);
    }
  }

 private:
  struct Read {
    size_t graph = 0;
    int64_t group = 0;  // the handle of the task group; 0: none
    Range range;
    GraphUse use;
  };

  void FindTensors() {
    std::set<int64_t> seen;
    for (const int64_t id : work_.all_buffers) {
      if (id == 0 || !seen.insert(id).second) continue;
      const storage::Buffer& buffer = trace_.GetBuffer(id);
      if (buffer.device != 0 && buffer.address != 0) tensors_.push_back(&buffer);
    }
    std::sort(tensors_.begin(), tensors_.end(),
              [](const auto* a, const auto* b) { return a->address < b->address; });
    for (const storage::Buffer* tensor : tensors_) longest_ = std::max(longest_, tensor->bytes);
  }

  // The youngest tensor that held all these bytes at this time; null if there was none.
  const storage::Buffer* TensorAt(const Range& range, int64_t ns) const {
    const storage::Buffer* found = nullptr;
    auto one = std::lower_bound(
        tensors_.begin(), tensors_.end(), range.second - longest_,
        [](const storage::Buffer* tensor, int64_t address) { return tensor->address < address; });
    for (; one != tensors_.end() && (*one)->address <= range.first; ++one) {
      const storage::Buffer& tensor = **one;
      if (tensor.address + tensor.bytes < range.second || tensor.alloc_ns > ns) continue;
      if (tensor.free_ns != 0 && tensor.free_ns <= ns) continue;
      if (found == nullptr || tensor.alloc_ns > found->alloc_ns) found = &tensor;
    }
    return found;
  }

  Range AddressesOf(const Work& work, const ByteAccess& access) const {
    const storage::Buffer& buffer = work.trace->GetBuffer(access.buffer);
    if (buffer.device == 0 || buffer.address == 0) return {0, 0};
    return {buffer.address + access.first, buffer.address + access.end};
  }

  void Take(size_t i) {
    const WorkCall& call = calls_.calls[i];
    if (call.status != 0) return;
    const WorkForm& form = calls_.form(i);
    const K kind = form.acl_kind();
    const auto object = [&] { return form.Integer(form.function->object); };
    if (kind == K::kGroupBegin) open_group_[call.stream_id] = reads_.size();
    if (kind == K::kGroupEnd) {
      const auto open = open_group_.find(call.stream_id);
      if (open == open_group_.end()) return;
      for (size_t r = open->second; r < reads_.size(); ++r) reads_[r].group = object();
      open_group_.erase(open);
    }
    if (kind == K::kUpdateBegin) updating_[call.stream_id] = object();
    if (kind == K::kUpdateEnd) updating_.erase(call.stream_id);
    if (kind != K::kOperator) return;
    if (const auto group = updating_.find(call.stream_id); group != updating_.end()) {
      calls_.VisitAccesses(i, [&](const ByteAccess& access) {
        if (!access.write) {
          read_by_updates_[group->second].insert(AddressesOf(calls_, access));
        }
      });
    }
    const auto graph = graph_of_.find(call.model_id);
    if (call.model_id == 0 || graph == graph_of_.end()) return;
    TakeCaptured(i, graph->second);
  }

  void TakeCaptured(size_t i, size_t graph) {
    const WorkCall& call = calls_.calls[i];
    ByteSet& made = made_[graph];
    const int64_t entry = work_.Find(call.parent_id);
    const bool held = entry >= 0 && graphs_.graph_of[entry] == static_cast<int32_t>(graph);
    if (held && !meaning::IsKnownNamespace(work_.op(static_cast<size_t>(entry)).name)) {
      ByteSet named;
      work_.VisitAccesses(static_cast<size_t>(entry), [&](const ByteAccess& access) {
        const Range range = AddressesOf(work_, access);
        named.Add(range.first, range.second);
      });
      calls_.VisitAccesses(i, [&](const ByteAccess& access) {
        if (access.write) return;
        const Range range = AddressesOf(calls_, access);
        if (range.first == range.second || !made.Within(range.first, range.second).empty()) return;
        if (!named.Within(range.first, range.second).empty()) return;
        const storage::Buffer* tensor = TensorAt(range, call.begin_ns);
        if (tensor == nullptr) return;
        const GraphUse use = {tensor->buffer_id, range.first - tensor->address,
                              range.second - tensor->address, static_cast<uint32_t>(entry)};
        reads_.push_back({graph, 0, range, use});
      });
    }
    calls_.VisitAccesses(i, [&](const ByteAccess& access) {
      if (!access.write) return;
      const Range range = AddressesOf(calls_, access);
      made.Add(range.first, range.second);
    });
  }

  OwnGraphs& graphs_;
  const Work& work_;
  const Work& calls_;
  const storage::Reader& trace_;
  std::unordered_map<int64_t, size_t> graph_of_;  // by model
  std::vector<const storage::Buffer*> tensors_;   // PyTorch's on a device, by address
  int64_t longest_ = 0;                           // bytes of the largest one
  std::unordered_map<size_t, ByteSet> made_;      // addresses that the graph has written, by graph
  std::unordered_map<int64_t, size_t> open_group_;      // the first read of the group, by stream
  std::unordered_map<int64_t, int64_t> updating_;       // the group, by stream
  std::map<int64_t, std::set<Range>> read_by_updates_;  // by group
  std::vector<Read> reads_;
};

}  // namespace

void FindHiddenReads(OwnGraphs& graphs) {
  if (graphs.work != graphs.calls) HiddenReadFinder(graphs).Find();
}

}  // namespace acltape::analyzer::executions
