#include "analyzer/program/acl_leaves.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <unordered_map>

#include "analyzer/acl/acl_order.h"
#include "analyzer/acl/acl_program.h"
#include "analyzer/acl/host_memory.h"
#include "analyzer/steps/steps.h"
#include "generated/meaning/parameter_positions.h"
#include "meaning/acl_operators.h"
#include "meaning/options.h"
#include "storage/error.h"
#include "storage/packing.h"
#include "storage/payload.h"

namespace acltape::analyzer {
namespace {

using K = AclCallKind;
using storage::Snapshot;
using Content = HostMemory::Content;

// The positions of the destination and the source are those of all four functions that copy.
namespace copy = meaning::position::aclrtMemcpy2d;

// Gives the entries of a work the times of the executions of graphs in which they ran.
class IssueTimes {
 public:
  IssueTimes(const Work& calls, Work& work) : calls_(calls), work_(work) {}

  // Adds the entry that was added to the work last.
  void Add(const Leaf& leaf) {
    HeldByGraph& held = work_.held.emplace_back();
    if (leaf.execution == 0) return;
    WorkCall& entry = work_.calls.back();
    const auto [known, created] =
        index_of_.try_emplace(leaf.execution, static_cast<int32_t>(work_.executions.size()));
    if (created) {
      const int64_t index = calls_.Find(leaf.execution);
      const WorkCall& call = calls_.calls[index];
      work_.executions.push_back({call.call_id, calls_.form(index).signature_id, entry.model_id,
                                  call.begin_ns, call.duration_ns});
    }
    held = {known->second, created, entry.duration_ns};
    const GraphExecution& execution = work_.executions[known->second];
    entry.thread = calls_.calls[calls_.Find(leaf.execution)].thread;
    entry.begin_ns = execution.begin_ns + (created ? 0 : execution.duration_ns);
    entry.duration_ns = created ? execution.duration_ns : 0;
  }

 private:
  const Work& calls_;
  Work& work_;
  std::unordered_map<int64_t, int32_t> index_of_;  // by the call that executes
};

// The work of the leaves, with the steps of the calls that issued them.
Work WorkOf(const std::vector<Leaf>& leaves, const Work& calls) {
  Work work;
  work.trace = calls.trace;
  work.dialect = Dialect::kAclLeaves;
  std::map<std::pair<int32_t, LeafKind>, int32_t> form_of;
  IssueTimes times(calls, work);
  int64_t latest = 0;
  for (const Leaf& leaf : leaves) {
    const int64_t index = calls.Find(RecordedCall(leaf.call.call_id));
    WorkCall& call = work.calls.emplace_back(calls.calls[index]);
    const std::span<const int64_t> buffers = calls.buffers(index);
    call.call_id = leaf.call.call_id;
    call.step = -1;
    call.first_buffer = static_cast<uint32_t>(work.all_buffers.size());
    work.all_buffers.insert(work.all_buffers.end(), buffers.begin(), buffers.end());
    const auto [form, created] =
        form_of.try_emplace({call.form, leaf.kind}, static_cast<int32_t>(work.forms.size()));
    if (created) {
      WorkForm& made = work.forms.emplace_back(calls.forms[call.form]);
      made.kind = leaf.kind;
      const std::vector<ArgumentUse> uses = UsesOfLeaf(*leaf.op, leaf.kind, leaf.arguments);
      std::erase_if(made.accesses, [&](const FormAccess& access) {
        return std::none_of(uses.begin(), uses.end(), [&](const ArgumentUse& use) {
          return leaf.arguments[use.argument].position ==
                     (*made.arguments)[access.argument].position &&
                 use.element == access.element && use.write == access.write;
        });
      });
    }
    call.form = form->second;
    times.Add(leaf);
    latest = std::max(latest, IssuedBy(leaf));
    work.issued_by.push_back(latest);
    work.place_of_id.emplace(call.call_id, work.calls.size() - 1);
  }
  for (const StepRange& step : calls.steps) {
    const auto [first, end] = work.Between(step.first_call, step.last_call);
    work.AddStep({step.step, first, end, step.found_by, step.first_call, step.last_call});
  }
  return work;
}

class Loader {
 public:
  explicit Loader(const Work& calls)
      : calls_(calls),
        trace_(*calls.trace),
        acl_(LoadAclProgram(trace_)),
        program_{.trace = &trace_},
        host_memory_(acl_, [this](const std::string& digest) { return program_.Payload(digest); }) {
    program_.level = Level::kAcl;
  }

  Program Load() {
    try {
      CheckContents(acl_);
    } catch (const Error& error) {
      program_.lacks = error.what();
    }
    if (!acl_.task_errors.empty()) {
      program_.lacks = trace_.path() + " holds device work that failed with code " +
                       std::to_string(*acl_.task_errors.begin()) +
                       " and would fail again; replay it as it was issued, without a plan and with "
                       "@streams recorded"_cli;
    }
    for (const AclTurn& turn : OrderOfWork(acl_)) AddTurn(turn);
    if (program_.leaves.empty()) {
      throw WithoutLeaves(trace_.path() + " holds no device work at the ACL level");
    }
    AddResultsOfExecutions();
    NoteLeftOut();
    program_.work = WorkOf(program_.leaves, calls_);
    Complete(program_);
    return std::move(program_);
  }

 private:
  bool IsHost(const TensorUse* use) const {
    return use == nullptr || acl_.buffers.at(use->tensor.buffer_id).host;
  }

  // The kind of the leaf for a call. Nothing if the call touches no device memory.
  std::optional<LeafKind> KindOf(const AclCall& call) const {
    if (call.kind() == K::kRandom || call.TakesFromRanks()) return LeafKind::kSource;
    if (!IsCopy(call.kind())) {
      if (call.writes.empty() && call.reads.empty()) return std::nullopt;
      return LeafKind::kKernel;
    }
    const bool to_host = IsHost(call.Use(copy::kDst));
    const bool from_host = IsHost(call.Use(copy::kSrc));
    if (to_host && from_host) return std::nullopt;
    const TensorUse* device = call.Use(from_host ? copy::kDst : copy::kSrc);
    if (device->layout->ElementCount() == 0) return std::nullopt;
    return to_host ? LeafKind::kHostRead : from_host ? LeafKind::kSource : LeafKind::kKernel;
  }

  void AddTurn(const AclTurn& turn) {
    contents_.insert(contents_.end(), turn.contents.begin(), turn.contents.end());
    const AclCall& call = acl_.calls[turn.call];
    const std::optional<LeafKind> kind = KindOf(call);
    if (!kind) return;
    Leaf& leaf = program_.leaves.emplace_back();
    leaf.index = static_cast<int64_t>(program_.leaves.size()) - 1;
    leaf.call = call.call;
    leaf.call.call_id += kExecutionIds * times_[turn.call]++;
    leaf.op = call.op;
    leaf.kind = *kind;
    if (turn.execution >= 0) leaf.execution = acl_.calls[turn.execution].call.call_id;
    for (const storage::Argument& argument : call.arguments) {
      if (!IsIncidental(argument)) leaf.arguments.push_back(argument);
    }
    if (IsPlaneCopy(call.kind())) SetRows(leaf);
    for (const int64_t arrived : contents_) TakeContents(acl_.calls[arrived], leaf);
    contents_.clear();
    if (*kind == LeafKind::kSource && IsCopy(call.kind())) {
      SetHostContent(call, turn.execution, leaf);
    } else if (turn.execution < 0 && !call.suspect) {
      leaf.after = call.after;
    }
    executions_.resize(program_.leaves.size(), -1);
    executions_.back() = turn.execution;
  }

  // A copy with rows touches only these rows and not its whole range.
  void SetRows(Leaf& leaf) {
    for (storage::Argument& argument : leaf.arguments) {
      if (argument.tensors.empty() || argument.tensors[0].buffer_id == 0) continue;
      program_.own_layouts.push_back(
          RowsOf(leaf, argument, program_.LayoutOf(argument.tensors[0])));
      argument.tensors[0].layout_id = -static_cast<int64_t>(program_.own_layouts.size());
    }
  }

  // Adds contents of device memory that no recorded call wrote.
  void TakeContents(const AclCall& call, Leaf& leaf) const {
    for (const Snapshot& snapshot : call.before) {
      const auto buffer = acl_.buffers.find(snapshot.tensor.buffer_id);
      if (snapshot.position >= 0 || buffer == acl_.buffers.end() || buffer->second.host) continue;
      leaf.before.push_back(snapshot);
    }
  }

  std::string Keep(std::vector<uint8_t> bytes) {
    std::string digest = storage::DigestOf(bytes.data(), static_cast<int64_t>(bytes.size()));
    program_.own_payloads.try_emplace(
        digest, std::make_shared<const std::vector<uint8_t>>(std::move(bytes)));
    return digest;
  }

  // The bytes that a copy brings from the host are the result of its leaf.
  void SetHostContent(const AclCall& call, int64_t execution, Leaf& leaf) {
    const storage::TensorRef& to = leaf.arguments[copy::kDst].tensors[0];
    const storage::Layout& layout = program_.LayoutOf(to);
    Snapshot result;
    result.call_id = leaf.call.call_id;
    result.position = copy::kDst;
    result.after = true;
    result.tensor = to;
    result.bytes = layout.ElementCount();
    result.packing = layout.IsDense() ? 0 : 1;
    const Snapshot* source = execution < 0 ? call.Before(copy::kSrc) : nullptr;
    if (source != nullptr && source->bytes == result.bytes) {
      result.digest = source->digest;
      result.has_payload = source->has_payload;
    } else {
      std::vector<uint8_t> bytes = BytesOfHost(call, execution, source);
      if (bytes.empty()) return;  // a user of the values reports what is missing
      result.digest = Keep(std::move(bytes));
      result.has_payload = true;
    }
    leaf.after.push_back(std::move(result));
  }

  // The packed bytes of the copy's host side. Empty if the trace does not hold them.
  std::vector<uint8_t> BytesOfHost(const AclCall& call, int64_t execution,
                                   const Snapshot* source) const {
    const bool plane = IsPlaneCopy(call.kind());
    const auto width = static_cast<size_t>(
        call.Integer(plane ? copy::kWidth : meaning::position::aclrtMemcpy::kCount));
    const size_t rows = plane ? static_cast<size_t>(call.Integer(copy::kHeight)) : 1;
    const size_t pitch = plane ? static_cast<size_t>(call.Integer(copy::kSpitch)) : width;
    Content content;
    size_t first = 0;
    if (source != nullptr) {
      content = program_.Payload(source->digest);
    } else if (const TensorUse* from = call.Use(copy::kSrc); from != nullptr && execution >= 0) {
      content = host_memory_.At(execution, from->tensor.buffer_id);
      first = static_cast<size_t>(from->layout->FirstByte());
    }
    if (content == nullptr || first + (rows - 1) * pitch + width > content->size()) return {};
    std::vector<uint8_t> bytes;
    for (size_t row = 0; row < rows; ++row) {
      const auto row_begin = content->begin() + static_cast<std::ptrdiff_t>(first + row * pitch);
      bytes.insert(bytes.end(), row_begin, row_begin + static_cast<std::ptrdiff_t>(width));
    }
    return bytes;
  }

  // An execution recorded what the buffers of its graph held after it. Each part of them is the
  // result of the last leaf of the execution that wrote the part.
  void AddResultsOfExecutions() {
    std::map<int64_t, std::vector<int64_t>> leaves_of;  // by execution
    for (size_t i = 0; i < executions_.size(); ++i) {
      if (executions_[i] >= 0) leaves_of[executions_[i]].push_back(static_cast<int64_t>(i));
    }
    for (const auto& [execution, leaves] : leaves_of) {
      const AclCall& call = acl_.calls[execution];
      if (call.suspect) continue;
      for (const Snapshot& snapshot : call.after) {
        if (snapshot.position < 0 && snapshot.tensor.buffer_id != 0) {
          AddResults(snapshot, leaves);
        }
      }
    }
  }

  void AddResults(const Snapshot& snapshot, const std::vector<int64_t>& leaves) {
    const storage::Layout& range = trace_.GetLayout(snapshot.tensor.layout_id);
    ByteSet later;  // bytes that later leaves of the execution wrote
    Content content;
    for (auto index = leaves.rbegin(); index != leaves.rend(); ++index) {
      Leaf& leaf = program_.leaves[*index];
      const std::vector<ArgumentUse> uses = UsesOfLeaf(*leaf.op, leaf.kind, leaf.arguments);
      for (const ArgumentUse& use : uses) {
        if (!use.write) continue;
        const storage::TensorRef& tensor = leaf.arguments[use.argument].tensors[use.element];
        if (tensor.buffer_id != snapshot.tensor.buffer_id) continue;
        const storage::Layout& layout = program_.LayoutOf(tensor);
        const int64_t first = layout.FirstByte();
        const int64_t end = layout.EndByte();
        const bool last = later.Within(first, end).empty();
        later.Add(first, end);
        const K function = FindAclFunction(leaf.op->name).kind;
        const bool computed = leaf.kind == LeafKind::kKernel || function == K::kRandom ||
                              function == K::kCollective || meaning::Communicates(leaf.op->name);
        if (!last || !computed || first < range.FirstByte() || end > range.EndByte() ||
            first >= end) {
          continue;
        }
        Snapshot result = snapshot;
        result.call_id = leaf.call.call_id;
        result.position = leaf.arguments[use.argument].position;
        result.tensor = tensor;
        result.bytes = layout.ElementCount() * storage::DTypeBytes(layout.dtype);
        result.packing = layout.IsDense() ? 0 : 1;
        const bool whole = first == range.FirstByte() && end == range.EndByte();
        if (!whole || result.packing != 0) {
          if (content == nullptr) content = program_.Payload(snapshot.digest);
          if (content == nullptr) continue;  // the digest covers more than this tensor
          const uint8_t* bytes = content->data() + (first - range.FirstByte());
          std::vector<uint8_t> part(static_cast<size_t>(result.bytes));
          if (result.packing == 0) {
            std::memcpy(part.data(), bytes, part.size());
          } else {
            storage::PackRowMajor(layout, bytes, part.data());
          }
          result.digest = Keep(std::move(part));
        }
        leaf.after.push_back(std::move(result));
      }
    }
  }

  void NoteLeftOut() {
    for (const AclCall& call : acl_.calls) {
      const bool left_out = call.kind() == K::kHostFunction || call.kind() == K::kUnknown ||
                            call.kind() == K::kLeftOut || IsCapturedCollective(call);
      if (!left_out || call.fate != AclFate::kIssued) continue;
      program_.left_out[call.op->FullName()].push_back(call.call.call_id);
    }
  }

  const Work& calls_;
  const storage::Reader& trace_;
  const AclProgram acl_;
  Program program_;
  std::vector<int64_t> contents_;               // arrived, for the next leaf
  std::unordered_map<int64_t, int64_t> times_;  // how often each call has run
  std::vector<int64_t> executions_;             // by leaf: the execution, or -1
  HostMemory host_memory_;
};

}  // namespace

Program LoadAclLeaves(const Work& calls) { return Loader(calls).Load(); }

int64_t IssuedBy(const Leaf& leaf) {
  return leaf.execution != 0 ? leaf.execution : RecordedCall(leaf.call.call_id);
}

storage::Layout RowsOf(const Leaf& leaf, const storage::Argument& argument, storage::Layout range) {
  const int64_t rows = leaf.arguments[copy::kHeight].integer;
  const int64_t width = leaf.arguments[copy::kWidth].integer;
  range.shape = {rows, width};
  range.strides = {leaf.arguments[static_cast<size_t>(argument.position) + 1].integer, 1};
  return range;
}

}  // namespace acltape::analyzer
