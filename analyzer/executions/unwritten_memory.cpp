#include "analyzer/executions/unwritten_memory.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "analyzer/calls/acl_uses.h"
#include "analyzer/calls/byte_map.h"
#include "analyzer/executions/acl_flow.h"
#include "analyzer/executions/element_places.h"
#include "storage/database.h"
#include "storage/packing.h"

namespace acltape::analyzer::executions {
namespace {

using K = AclCallKind;

constexpr int64_t kMostElements = int64_t{1} << 22;  // a tensor with more is not followed
constexpr int64_t kMostLookedAt = int64_t{1} << 27;  // elements over all calls

// Where undefined bytes come from.
struct Mark {
  uint32_t allocation = 0;
  uint32_t reader = 0;  // the first operator that read such bytes
  bool read = false;
  int64_t elements = 0;
  int64_t of_elements = 0;
};

using Marks = ByteMap<uint32_t>;  // bytes of a buffer, with indices of marks

// A copy between ranges of the same length.
struct Way {
  std::optional<ByteAccess> from, to;  // on the device
};

class UnwrittenFinder {
 public:
  explicit UnwrittenFinder(const OwnGraphs& graphs)
      : graphs_(graphs),
        work_(*graphs.calls),
        trace_(*graphs.calls->trace),
        over_torch_(!trace_.Meta("torch_library").empty()) {
    for (size_t g = 0; g < graphs.graphs.size(); ++g) graph_of_[graphs.graphs[g].model_id] = g;
    for (const int64_t id : work_.all_buffers) {
      if (id != 0) begun_by_.emplace(trace_.GetBuffer(id).alloc_call, id);
    }
    FindGraphsThatWaitForOutside();
    FindWindows();
  }

  std::vector<UndefinedRead> Find(const VisitInOrder& visit) {
    visit([&](size_t call) { Take(static_cast<uint32_t>(call)); });
    return std::move(rows_);
  }

 private:
  // Work of such a graph may run after calls that the program issues later.
  void FindGraphsThatWaitForOutside() {
    std::set<std::pair<int32_t, int64_t>> recorded;  // graph and event
    for (size_t i = 0; i < work_.size(); ++i) {
      const int32_t graph = graphs_.graph_of[i];
      const WorkForm& form = work_.form(i);
      const K kind = form.acl_kind();
      if (graph < 0 || (kind != K::kEventRecord && kind != K::kEventWait)) continue;
      const int64_t event = form.Integer(form.function->object);
      if (kind == K::kEventRecord) {
        recorded.emplace(graph, event);
      } else if (!recorded.contains({graph, event})) {
        waits_outside_.insert(graph);
      }
    }
  }

  // While a recording is closed the program may write any memory.
  void FindWindows() {
    storage::Statement windows(trace_.database(),
                               "SELECT first_call FROM recorded_window ORDER BY first_call");
    while (windows.Next()) windows_.push_back(windows.Integer(0));
  }

  void Take(uint32_t call) {
    if (budget_ < 0) return;
    const WorkCall& row = work_.calls[call];
    for (; next_window_ < windows_.size() && windows_[next_window_] <= row.call_id;
         ++next_window_) {
      marks_of_.clear();
    }
    const WorkForm& form = work_.form(call);
    if (IsExecution(form.acl_kind())) {
      Execute(form.Integer(form.function->object));
    } else if (graphs_.graph_of[call] == OwnGraphs::kUpdate) {
      DefineAll(call);  // it becomes work of a graph
    } else {
      Run(call, /*known=*/true);
    }
  }

  void Execute(int64_t model) {
    const auto found = graph_of_.find(model);
    if (found == graph_of_.end()) {  // built without a capture, or captured before the recording
      marks_of_.clear();
      return;
    }
    const bool known = !waits_outside_.contains(static_cast<int32_t>(found->second));
    for (const uint32_t call : graphs_.graphs[found->second].held) {
      if (marks_of_.empty() || budget_ < 0) return;
      Run(call, known && graphs_.updatable[call] == 0);
    }
  }

  void Run(uint32_t call, bool known) {
    if (work_.calls[call].status != 0) return;
    const WorkForm& form = work_.form(call);
    const K kind = form.acl_kind();
    if (Allocates(call)) return;
    if (marks_of_.empty()) return;
    if (MayWriteAnything(kind)) {
      marks_of_.clear();
    } else if (!IsDeviceWork(kind)) {
      for (const int64_t buffer : work_.buffers(call)) marks_of_.erase(buffer);
    } else if (kind == K::kCopy || kind == K::kCopyAsync) {
      known ? Copy(call) : DefineAll(call);
    } else if (kind == K::kOperator) {
      operators_ = true;
      known ? Operate(call) : DefineAll(call);
    } else if (ChangesMemory(kind)) {
      DefineAll(call);
    }
  }

  // True for calls that run code of the program on memory that they do not name, or of whose work
  // the device chooses a part.
  static bool MayWriteAnything(K kind) {
    switch (kind) {
      case K::kHostFunction:
      case K::kLeftOut:
      case K::kUnknown:
      case K::kConditionTask:
      case K::kModelBranch:
        return true;
      default:
        return false;
    }
  }

  bool Allocates(uint32_t call) {
    const WorkForm& form = work_.form(call);
    const bool begins = form.acl_variant() == AclVariant::kAllocateDevice ||
                        form.acl_kind() == K::kPoolAllocate ||
                        work_.op(call).name == "aclrtMallocWithCfg";
    if (!begins) return false;
    const auto begun = begun_by_.find(work_.calls[call].call_id);
    if (begun == begun_by_.end()) return true;
    const storage::Buffer& buffer = trace_.GetBuffer(begun->second);
    if (buffer.device == 0 || buffer.bytes == 0) return true;
    marks_of_[buffer.buffer_id].Set(0, buffer.bytes, static_cast<uint32_t>(marks_.size()));
    marks_.push_back({call, 0, false, 0, 0});
    return true;
  }

  void DefineAll(uint32_t call) {
    work_.VisitAccesses(
        call, [&](const ByteAccess& access) { Define(access.buffer, access.first, access.end); });
  }

  void Define(int64_t buffer, int64_t first, int64_t end) {
    const auto found = marks_of_.find(buffer);
    if (found == marks_of_.end()) return;
    found->second.Remove(first, end);
    if (found->second.empty()) marks_of_.erase(found);
  }

  bool IsOnDevice(int64_t buffer) const { return trace_.GetBuffer(buffer).device != 0; }

  void Copy(uint32_t call) {
    Way way;
    work_.VisitAccesses(call, [&](const ByteAccess& access) {
      if (IsOnDevice(access.buffer)) (access.write ? way.to : way.from) = access;
    });
    if (!way.to) {
      if (way.from) BringToHost(call, *way.from);
      return;
    }
    // The bytes that the copy takes along, before it writes any of them.
    struct Part {
      int64_t first, end;
      uint32_t mark;
    };
    std::vector<Part> parts;
    if (way.from) {
      if (const auto source = marks_of_.find(way.from->buffer); source != marks_of_.end()) {
        source->second.Within(way.from->first, way.from->end,
                              [&](int64_t first, int64_t end, uint32_t mark) {
                                parts.push_back({first, end, mark});
                              });
      }
    }
    Define(way.to->buffer, way.to->first, way.to->end);
    const int64_t shift = way.from ? way.to->first - way.from->first : 0;
    for (const Part& part : parts) {
      const int64_t end = std::min(part.end + shift, way.to->end);
      marks_of_[way.to->buffer].Set(part.first + shift, end, part.mark);
    }
  }

  void BringToHost(uint32_t call, const ByteAccess& bytes) {
    const auto found = marks_of_.find(bytes.buffer);
    if (found == marks_of_.end()) return;
    int64_t unwritten = 0;
    std::optional<uint32_t> read, first_mark;
    found->second.Within(bytes.first, bytes.end, [&](int64_t first, int64_t end, uint32_t mark) {
      if (!first_mark) first_mark = mark;
      if (marks_[mark].read) {
        if (!read) read = mark;
      } else {
        unwritten += end - first;
      }
    });
    const int64_t all = bytes.end - bytes.first;
    if (read) {
      const Mark& mark = marks_[*read];
      Report({mark.allocation, mark.reader, call, mark.elements, mark.of_elements});
    } else if (unwritten == all && operators_ && !over_torch_) {
      Report({marks_[*first_mark].allocation, call, call, unwritten, all});
    }
  }

  void Report(const UndefinedRead& row) {
    if (!told_.insert(row.allocation).second) return;
    rows_.push_back(row);
  }

  // Marks elements that lie in undefined bytes. Nothing for a tensor without such bytes.
  struct Elements {
    std::vector<char> undefined;
    int64_t count = 0;
    uint32_t mark = 0;  // the mark of the first one
  };
  Elements ElementsOf(const ByteAccess& access) {
    Elements elements;
    const auto found = marks_of_.find(access.buffer);
    if (found == marks_of_.end()) return elements;
    std::vector<std::pair<int64_t, int64_t>> parts;
    found->second.Within(access.first, access.end, [&](int64_t first, int64_t end, uint32_t mark) {
      if (parts.empty()) elements.mark = mark;
      parts.emplace_back(first, end);
    });
    const storage::Layout& layout = *access.form->layout;
    if (parts.empty()) return elements;
    budget_ -= layout.ElementCount();
    const int64_t size = storage::DTypeBytes(layout.dtype);
    if (storage::IsRowMajor(layout)) {
      elements.undefined.assign(static_cast<size_t>(layout.ElementCount()), 0);
      for (const auto& [first, end] : parts) {
        const auto from = elements.undefined.begin() + (first - access.first) / size;
        const auto to = elements.undefined.begin() + (end - access.first + size - 1) / size;
        std::fill(from, to, 1);
      }
      elements.count = std::count(elements.undefined.begin(), elements.undefined.end(), 1);
      return elements;
    }
    elements.undefined.reserve(static_cast<size_t>(layout.ElementCount()));
    auto part = parts.begin();
    storage::ForEachElement(layout, [&](int64_t offset) {
      const int64_t first = layout.byte_offset + offset, end = first + size;
      if (part == parts.end() || part->first >= end || part->second <= first) {
        part = std::upper_bound(
            parts.begin(), parts.end(), first,
            [](int64_t byte, const std::pair<int64_t, int64_t>& one) { return byte < one.second; });
      }
      const bool inside = part != parts.end() && part->first < end;
      elements.undefined.push_back(inside ? 1 : 0);
      elements.count += inside ? 1 : 0;
    });
    if (elements.count == 0) elements.undefined.clear();
    return elements;
  }

  // True if the tensors lie in plain order, and are small enough to be followed.
  bool CanBeFollowed(uint32_t call) const {
    bool can = IsAclFlowKnown(work_.op(call).name);
    if (!can) return false;
    work_.VisitAccesses(call, [&](const ByteAccess& access) {
      const storage::Layout& layout = *access.form->layout;
      can = can && layout.format.empty() && layout.ElementCount() <= kMostElements;
    });
    return can;
  }

  void Operate(uint32_t call) {
    bool touches = false;
    work_.VisitAccesses(call, [&](const ByteAccess& access) {
      touches = touches || marks_of_.contains(access.buffer);
    });
    if (!touches) return;
    if (!CanBeFollowed(call)) {
      DefineAll(call);
      return;
    }
    std::vector<FlowTensor> inputs;
    std::optional<uint32_t> source;
    int64_t elements = 0, of_elements = 0;
    work_.VisitAccesses(call, [&](const ByteAccess& access) {
      if (access.write) return;
      FlowTensor input{access.form->argument, access.form->layout, {}};
      Elements marked = ElementsOf(access);
      // The finding names the operator that read such bytes first.
      const bool earlier = source && !marks_[*source].read && marks_[marked.mark].read;
      if (marked.count != 0 && (!source || earlier)) {
        source = marked.mark;
        elements = marked.count;
        of_elements = static_cast<int64_t>(marked.undefined.size());
      }
      input.undefined = std::move(marked.undefined);
      inputs.push_back(std::move(input));
    });
    std::optional<uint32_t> made;
    if (source) {
      made = *source;
      if (!marks_[*source].read) {
        made = MarkOf({marks_[*source].allocation, call, true, elements, of_elements});
      }
    }
    const std::vector<storage::SignatureArgument>& arguments = *work_.form(call).arguments;
    std::vector<std::pair<ByteAccess, std::vector<char>>> writes;
    work_.VisitAccesses(call, [&](const ByteAccess& access) {
      if (!access.write) return;
      std::vector<char> marked;
      if (made && !IsWorkspace(arguments[access.form->argument])) {
        marked = FlowOfAcl(work_.op(call).name, arguments, inputs, *access.form->layout);
      }
      writes.emplace_back(access, std::move(marked));
    });
    for (const auto& [access, marked] : writes) Write(access, marked, made.value_or(0));
  }

  // Returns the mark of an allocation and a reader, of which one is enough.
  uint32_t MarkOf(const Mark& mark) {
    const auto [entry, created] =
        made_by_.try_emplace({mark.allocation, mark.reader}, static_cast<uint32_t>(marks_.size()));
    if (created) marks_.push_back(mark);
    return entry->second;
  }

  void Write(const ByteAccess& access, const std::vector<char>& marked, uint32_t mark) {
    const storage::Layout& layout = *access.form->layout;
    const bool any = std::find(marked.begin(), marked.end(), 1) != marked.end();
    if (!any && (!access.form->strided || !marks_of_.contains(access.buffer))) {
      Define(access.buffer, access.first, access.end);
      return;
    }
    if (!IsOnDevice(access.buffer)) return;
    budget_ -= layout.ElementCount();
    const int64_t size = storage::DTypeBytes(layout.dtype);
    Marks& bytes = marks_of_[access.buffer];
    if (any && storage::IsRowMajor(layout)) {
      bytes.Remove(access.first, access.end);
      for (auto from = std::find(marked.begin(), marked.end(), 1); from != marked.end();) {
        const auto to = std::find(from, marked.end(), 0);
        bytes.Set(access.first + (from - marked.begin()) * size,
                  access.first + (to - marked.begin()) * size, mark);
        from = std::find(to, marked.end(), 1);
      }
      if (bytes.empty()) marks_of_.erase(access.buffer);
      return;
    }
    // Neighbours that are alike are written together.
    int64_t first = 0, end = 0;
    bool undefined = false;
    const auto flush = [&] { undefined ? bytes.Set(first, end, mark) : bytes.Remove(first, end); };
    size_t element = 0;
    storage::ForEachElement(layout, [&](int64_t offset) {
      const bool one = any && element < marked.size() && marked[element] != 0;
      ++element;
      const int64_t byte = layout.byte_offset + offset;
      if (byte == end && one == undefined) {
        end += size;
        return;
      }
      flush();
      first = byte;
      end = byte + size;
      undefined = one;
    });
    flush();
    if (bytes.empty()) marks_of_.erase(access.buffer);
  }

  const OwnGraphs& graphs_;
  const Work& work_;
  const storage::Reader& trace_;
  std::unordered_map<int64_t, size_t> graph_of_;   // by model
  std::unordered_map<int64_t, int64_t> begun_by_;  // buffers, by the call that allocated them
  std::unordered_set<int32_t> waits_outside_;      // graphs
  std::vector<int64_t> windows_;                   // the first call of each
  size_t next_window_ = 0;
  int64_t budget_ = kMostLookedAt;
  bool operators_ = false;  // one has run
  const bool over_torch_;   // tensors are copied by the framework
  std::vector<Mark> marks_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> made_by_;
  std::unordered_map<int64_t, Marks> marks_of_;  // by buffer; none of them is empty
  std::set<uint32_t> told_;                      // allocations
  std::vector<UndefinedRead> rows_;
};

// True if work of the device is known to be missing in the trace: operators without a wrapper,
// calls that were lost, and collectives, which are calls of another library.
bool LacksWork(const storage::Reader& trace) {
  return trace.database().Integer(
             "SELECT 1 FROM ledger WHERE kind IN ('operator_not_in_table', 'calls_missing', "
             "'left_out', 'records_dropped') UNION SELECT 1 FROM process WHERE rank IS NOT NULL "
             "AND rank >= 0") != 0;
}

}  // namespace

std::vector<UndefinedRead> FindUnwrittenReads(const OwnGraphs& graphs, const VisitInOrder& visit) {
  if (LacksWork(*graphs.calls->trace)) return {};
  return UnwrittenFinder(graphs).Find(visit);
}

}  // namespace acltape::analyzer::executions
