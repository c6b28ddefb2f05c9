#include "analyzer/executions/undefined_reads.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "analyzer/executions/element_flow.h"
#include "storage/packing.h"

namespace acltape::analyzer::executions {
namespace {

constexpr int64_t kLargest = int64_t{1} << 24;  // bytes of a tensor that is followed
constexpr int64_t kBudget = int64_t{1} << 28;   // elements that are looked at in all

// Memory of which something is undefined.
struct Undefined {
  std::vector<char> bytes;  // by byte of the buffer: 1: nothing wrote it
  uint32_t allocation = 0;
  // The first entry that read such bytes, and how many elements; set for what is made of them.
  uint32_t reader = 0;
  bool read = false;
  int64_t elements = 0;
  int64_t of_elements = 0;
};

class UndefinedFinder {
 public:
  explicit UndefinedFinder(const OwnGraphs& graphs)
      : graphs_(graphs), work_(*graphs.work), trace_(*graphs.work->trace) {}

  std::vector<UndefinedRead> Find() {
    if (LaunchesUnknownKernels()) return {};
    FindCallsWithoutLeaves();
    FindAllocationsOfCaptures();
    for (const Turn& turn : graphs_.turns) {
      AllocateBefore(turn.call_id);
      DefineBefore(turn.call_id);
      if (turn.graph < 0) {
        Run(turn.entry);
      } else {
        for (const uint32_t entry : graphs_.graphs[turn.graph].held) {
          if (work_.form(entry).kind != LeafKind::kAllocation) Run(entry);
        }
      }
      if (budget_ < 0) return {};
    }
    return std::move(rows_);
  }

 private:
  bool LaunchesUnknownKernels() const {
    const Work& calls = *graphs_.calls;
    return std::any_of(calls.forms.begin(), calls.forms.end(), [](const WorkForm& form) {
      return form.op->name.starts_with("aclrtLaunchKernel");
    });
  }

  // Calls of the interface that write memory without being work of a leaf.
  void FindCallsWithoutLeaves() {
    const Work& calls = *graphs_.calls;
    for (size_t i = 0; i < calls.size(); ++i) {
      if (calls.calls[i].status != 0 || !ChangesMemory(calls.form(i).acl_kind())) continue;
      if (work_.Find(calls.calls[i].parent_id) < 0)
        without_leaf_.push_back(static_cast<uint32_t>(i));
    }
  }

  // The memory of a graph is made once, at its capture: the program may write it before the first
  // execution, and later ones find what an execution left there.
  void FindAllocationsOfCaptures() {
    for (const OwnGraph& graph : graphs_.graphs) {
      for (const uint32_t entry : graph.held) {
        if (work_.form(entry).kind == LeafKind::kAllocation) of_captures_.push_back(entry);
      }
    }
    std::sort(of_captures_.begin(), of_captures_.end());
  }

  void AllocateBefore(int64_t call_id) {
    for (; next_allocation_ < of_captures_.size() &&
           work_.calls[of_captures_[next_allocation_]].call_id < call_id;
         ++next_allocation_) {
      Run(of_captures_[next_allocation_]);
    }
  }

  void DefineBefore(int64_t call_id) {
    const Work& calls = *graphs_.calls;
    for (; next_ < without_leaf_.size() && calls.calls[without_leaf_[next_]].call_id < call_id;
         ++next_) {
      if (undefined_.empty()) continue;
      calls.VisitAccesses(without_leaf_[next_], [&](const ByteAccess& access) {
        if (!access.write) return;
        const int64_t base = calls.trace->GetBuffer(access.buffer).address;
        const int64_t first = base + access.first, end = base + access.end;
        for (auto one = undefined_.begin(); one != undefined_.end();) {
          const storage::Buffer& buffer = trace_.GetBuffer(one->first);
          const bool touched = first < buffer.address + buffer.bytes && buffer.address < end;
          if (touched) Define(one->second, first - buffer.address, end - first);
          one = touched && IsDefined(one->second) ? undefined_.erase(one) : std::next(one);
        }
      });
    }
  }

  static void Define(Undefined& memory, int64_t first, int64_t count) {
    const auto size = static_cast<int64_t>(memory.bytes.size());
    const int64_t end = std::min(first + count, size);
    for (int64_t byte = std::max<int64_t>(first, 0); byte < end; ++byte) {
      memory.bytes[static_cast<size_t>(byte)] = 0;
    }
  }
  static bool IsDefined(const Undefined& memory) {
    return std::find(memory.bytes.begin(), memory.bytes.end(), 1) == memory.bytes.end();
  }

  bool IsOnDevice(int64_t buffer) const { return trace_.GetBuffer(buffer).device != 0; }

  void Run(uint32_t entry) {
    const WorkForm& form = work_.form(entry);
    if (work_.calls[entry].status != 0) return;
    if (form.kind == LeafKind::kAllocation) {
      Allocate(entry);
      return;
    }
    if (!form.active() || undefined_.empty()) return;
    if (form.kind != LeafKind::kHostRead && !IsFlowKnown(work_.op(entry).name)) {
      for (const int64_t buffer : work_.buffers(entry)) undefined_.erase(buffer);
      return;
    }
    // The tensors that it reads, and the elements of them that nothing wrote.
    std::vector<FlowTensor> inputs;
    const Undefined* source = nullptr;
    int64_t elements = 0, of_elements = 0;
    bool to_host = form.kind == LeafKind::kHostRead;
    work_.VisitAccesses(entry, [&](const ByteAccess& access) {
      if (access.write) {
        to_host = to_host || !IsOnDevice(access.buffer);
        return;
      }
      FlowTensor input{access.form->argument, access.form->layout, {}};
      const auto found = undefined_.find(access.buffer);
      if (found != undefined_.end()) {
        input.undefined = ElementsOf(found->second, *access.form->layout);
        const int64_t count = std::count(input.undefined.begin(), input.undefined.end(), 1);
        if (count == 0) input.undefined.clear();
        if (count != 0 && source == nullptr) {
          source = &found->second;
          elements = count;
          of_elements = static_cast<int64_t>(input.undefined.size());
        }
      }
      inputs.push_back(std::move(input));
    });
    if (source != nullptr && to_host && source->read) {
      Report(*source, entry);
      source = nullptr;
    }
    std::optional<Undefined> made;
    if (source != nullptr) {
      made = Undefined{{}, source->allocation, entry, true, elements, of_elements};
      if (source->read) {
        made->reader = source->reader;
        made->elements = source->elements;
        made->of_elements = source->of_elements;
      }
    }
    work_.VisitAccesses(entry, [&](const ByteAccess& access) {
      if (!access.write) return;
      Write(entry, access, inputs, made);
      DefineBeside(access);
    });
  }

  // A framework may name memory by another storage than the one that an allocation made: a graph's
  // inputs, of which it keeps the addresses alone. What writes the one has written the other,
  // unless the one had ended before the other began. A graph writes both in each execution.
  void DefineBeside(const ByteAccess& access) {
    const storage::Buffer& written = trace_.GetBuffer(access.buffer);
    const int64_t first = written.address + access.first, end = written.address + access.end;
    for (auto place = places_.lower_bound({first - largest_, 0});
         place != places_.end() && place->first < end;) {
      const auto found = undefined_.find(place->second);
      if (found == undefined_.end()) {
        place = places_.erase(place);
        continue;
      }
      std::vector<char>& bytes = found->second.bytes;
      const auto size = static_cast<int64_t>(bytes.size());
      const int64_t from = std::clamp<int64_t>(first - place->first, 0, size);
      const int64_t to = std::clamp<int64_t>(end - place->first, 0, size);
      const storage::Buffer& beside = trace_.GetBuffer(place->second);
      const bool earlier = written.free_ns != 0 && written.free_ns <= beside.alloc_ns;
      const bool other =
          place->second != access.buffer && beside.device == written.device && !earlier;
      if (other && from < to) std::fill(bytes.begin() + from, bytes.begin() + to, 0);
      ++place;
    }
  }

  void Allocate(uint32_t entry) {
    if (work_.op(entry).name.starts_with("aten::resize_")) {
      Grow(entry);
      return;
    }
    if (!work_.op(entry).name.starts_with("aten::empty") &&
        !work_.op(entry).name.starts_with("aten::new_empty")) {
      return;
    }
    const std::span<const int64_t> buffers = work_.buffers(entry);
    for (const storage::SignatureArgument& argument : *work_.form(entry).arguments) {
      // The tensor like which another one is made is an input.
      if (argument.direction != storage::Direction::kOut) continue;
      for (const storage::SlotRef& tensor : argument.tensors) {
        const auto slot = static_cast<size_t>(tensor.slot);
        if (!tensor.has_buffer() || slot >= buffers.size()) continue;
        const storage::Buffer& buffer = trace_.GetBuffer(buffers[slot]);
        const bool is_new = named_.insert(buffer.buffer_id).second;
        if (buffer.device == 0 || !is_new || buffer.bytes == 0 || buffer.bytes > kLargest) continue;
        Begin(buffer,
              {std::vector<char>(static_cast<size_t>(buffer.bytes), 1), entry, 0, false, 0, 0});
      }
    }
  }

  void Begin(const storage::Buffer& buffer, Undefined memory) {
    places_.insert({buffer.address, buffer.buffer_id});
    largest_ = std::max(largest_, buffer.bytes);
    undefined_[buffer.buffer_id] = std::move(memory);
  }

  // A tensor that grows moves to memory of its own, which begins as the old one ends.
  void Grow(uint32_t entry) {
    if (beginning_.empty()) {
      for (const int64_t id :
           std::set<int64_t>(work_.all_buffers.begin(), work_.all_buffers.end())) {
        if (id != 0 && IsOnDevice(id)) beginning_.emplace(trace_.GetBuffer(id).alloc_ns, id);
      }
    }
    for (const int64_t id : work_.buffers(entry)) {
      const storage::Buffer& old = trace_.GetBuffer(id);
      const auto grown = old.free_ns == 0 ? beginning_.end() : beginning_.find(old.free_ns);
      if (old.device == 0 || grown == beginning_.end()) continue;
      const storage::Buffer& buffer = trace_.GetBuffer(grown->second);
      if (buffer.bytes <= old.bytes || buffer.bytes > kLargest) continue;
      Undefined memory{{}, entry, 0, false, 0, 0};
      if (const auto known = undefined_.find(id); known != undefined_.end()) memory = known->second;
      memory.bytes.resize(static_cast<size_t>(old.bytes), 0);
      memory.bytes.resize(static_cast<size_t>(buffer.bytes), 1);
      Begin(buffer, std::move(memory));
      undefined_.erase(id);
    }
  }

  std::vector<char> ElementsOf(const Undefined& memory, const storage::Layout& layout) {
    std::vector<char> elements;
    budget_ -= layout.ElementCount();
    if (budget_ < 0) return elements;
    elements.reserve(static_cast<size_t>(layout.ElementCount()));
    storage::ForEachElement(layout, [&](int64_t offset) {
      const auto byte = static_cast<size_t>(layout.byte_offset + offset);
      elements.push_back(byte < memory.bytes.size() ? memory.bytes[byte] : 0);
    });
    return elements;
  }

  void Write(uint32_t entry, const ByteAccess& access, const std::vector<FlowTensor>& inputs,
             const std::optional<Undefined>& made) {
    const storage::Layout& layout = *access.form->layout;
    std::vector<char> elements;
    if (made) {
      const std::vector<storage::SignatureArgument>& arguments = *work_.form(entry).arguments;
      elements = FlowOf(work_.op(entry).name, arguments, inputs, layout);
    }
    const bool any = std::find(elements.begin(), elements.end(), 1) != elements.end();
    auto found = undefined_.find(access.buffer);
    if (found == undefined_.end()) {
      const int64_t bytes = trace_.GetBuffer(access.buffer).bytes;
      if (!any || !IsOnDevice(access.buffer) || bytes > kLargest) return;
      found = undefined_.emplace(access.buffer, *made).first;
      found->second.bytes.assign(static_cast<size_t>(bytes), 0);
    } else if (any) {
      std::vector<char> bytes = std::move(found->second.bytes);
      found->second = *made;
      found->second.bytes = std::move(bytes);
    }
    const int64_t size = storage::DTypeBytes(layout.dtype);
    std::vector<char>& bytes = found->second.bytes;
    size_t element = 0;
    budget_ -= layout.ElementCount();
    storage::ForEachElement(layout, [&](int64_t offset) {
      const char value = any ? elements[element] : 0;
      ++element;
      for (int64_t i = 0; i < size; ++i) {
        const auto byte = static_cast<size_t>(layout.byte_offset + offset + i);
        if (byte < bytes.size()) bytes[byte] = value;
      }
    });
    if (!any && IsDefined(found->second)) undefined_.erase(found);
  }

  void Report(const Undefined& source, uint32_t entry) {
    if (!told_.insert(source.allocation).second) return;
    rows_.push_back({source.allocation, source.reader, entry, source.elements, source.of_elements});
  }

  const OwnGraphs& graphs_;
  const Work& work_;
  const storage::Reader& trace_;
  int64_t budget_ = kBudget;
  std::vector<uint32_t> without_leaf_;  // calls of the interface
  size_t next_ = 0;
  std::vector<uint32_t> of_captures_;  // allocations that graphs hold
  size_t next_allocation_ = 0;
  std::set<int64_t> named_;                           // buffers of allocations
  std::unordered_map<int64_t, int64_t> beginning_;    // buffers of the device, by their begin
  std::unordered_map<int64_t, Undefined> undefined_;  // by buffer
  std::set<std::pair<int64_t, int64_t>> places_;      // address and buffer of allocations
  int64_t largest_ = 0;                               // bytes of the largest of these
  std::set<uint32_t> told_;                           // allocations
  std::vector<UndefinedRead> rows_;
};

}  // namespace

std::vector<UndefinedRead> FindUndefinedReads(const OwnGraphs& graphs) {
  return UndefinedFinder(graphs).Find();
}

}  // namespace acltape::analyzer::executions
