#include "analyzer/program/calls_inside.h"

#include <algorithm>

#include "analyzer/calls/acl_calls.h"
#include "analyzer/calls/acl_uses.h"
#include "analyzer/calls/byte_set.h"
#include "analyzer/calls/value_text.h"
#include "analyzer/program/device_range.h"
#include "meaning/dialects.h"
#include "meaning/torch_operators.h"

namespace acltape::analyzer {
namespace {

std::string FormText(const storage::Layout& layout) {
  return ListText(layout.shape) + ListText(layout.strides) + "t" +
         std::to_string(static_cast<int>(layout.dtype));
}

// A tensor of the leaf: which argument it is, and where it lies in the device's memory.
struct Named {
  std::string name;
  DeviceRange buffer;
  int64_t first = 0;  // address of the tensor's first byte
};

// The tensors of a leaf, one for each buffer. A view in another one's memory is found by it.
std::vector<Named> TensorsOf(const Work& work, size_t call) {
  std::vector<Named> tensors;
  const std::span<const int64_t> buffers = work.buffers(call);
  for (const storage::SignatureArgument& argument : *work.form(call).arguments) {
    if (!argument.HoldsTensors()) continue;
    for (size_t element = 0; element < argument.tensors.size(); ++element) {
      const storage::SlotRef& tensor = argument.tensors[element];
      const auto slot = static_cast<size_t>(tensor.slot);
      if (!tensor.has_buffer() || slot >= buffers.size() || buffers[slot] == 0) continue;
      const storage::Buffer& buffer = work.trace->GetBuffer(buffers[slot]);
      const DeviceRange range{buffer.address, buffer.address + buffer.bytes};
      tensors.push_back({argument.name + "." + std::to_string(element), range,
                         buffer.address + work.trace->GetLayout(tensor.layout_id).FirstByte()});
    }
  }
  return tensors;
}

// The calls inside of one leaf.
struct Inside {
  CallsInside kind = CallsInside::kNotRecorded;
  // Equal for leaves of which one graph repeats the calls: operators, numbers, and the places of
  // tensors among the leaf's.
  std::string text;
};

class Reading {
 public:
  Reading(const Work& work, size_t call)
      : trace_(*work.trace), tensors_(TensorsOf(work, call)), leaf_(work.calls[call].call_id) {}

  Inside Read() {
    for (const storage::Call& call : trace_.CallsInside(leaf_)) {
      const storage::Op& op = trace_.GetOp(call.op_id);
      if (!meaning::IsAclDialect(op.dialect)) continue;
      const AclCallKind kind = FindAclFunction(op.name).kind;
      if (WaitsOnHost(kind)) return {CallsInside::kWait, ""};
      if (kind != AclCallKind::kOperator || call.status != 0) {
        if (kind == AclCallKind::kOperator || IsDeviceWork(kind) || IsStreamTask(kind) ||
            kind == AclCallKind::kUnknown) {
          Lower(CallsInside::kOtherWork);
        }
        Lower(CallsInside::kRepeatable);
        continue;
      }
      Lower(CallsInside::kRepeatable);
      Add(op, trace_.Arguments(call));
    }
    return std::move(inside_);
  }

 private:
  // Keeps what is the least repeatable. A leaf of which nothing was recorded has no say.
  void Lower(CallsInside kind) {
    const bool first = inside_.kind == CallsInside::kNotRecorded;
    inside_.kind = first ? kind : std::min(inside_.kind, kind);
  }

  void Add(const storage::Op& op, const std::vector<storage::Argument>& arguments) {
    inside_.text += op.name;
    for (const ArgumentUse& use : UsesOfAclLeaf(op.name, LeafKind::kKernel, arguments)) {
      const storage::TensorRef& tensor =
          arguments[static_cast<size_t>(use.argument)].tensors[static_cast<size_t>(use.element)];
      const DeviceRange range = RangeOf(trace_, tensor);
      const bool hidden = !use.write && range.first < range.end && Around(range) == nullptr &&
                          !written_.Covers(range.first, range.end);
      if (hidden) Lower(CallsInside::kHiddenInputs);
      if (use.write) written_.Add(range.first, range.end);
    }
    for (const storage::Argument& argument : arguments) {
      if (IsIncidental(argument)) continue;
      inside_.text += "|" + (argument.HoldsTensors() ? "" : ValueText(argument));
      for (const storage::TensorRef& tensor : argument.tensors) inside_.text += TextOf(tensor);
    }
    inside_.text += "\n";
  }

  const Named* Around(const DeviceRange& range) const {
    const auto found = std::find_if(tensors_.begin(), tensors_.end(), [&](const Named& tensor) {
      return tensor.buffer.Holds(range);
    });
    return found == tensors_.end() ? nullptr : &*found;
  }

  std::string TextOf(const storage::TensorRef& tensor) const {
    if (!tensor.defined()) return "none";
    std::string text = FormText(trace_.GetLayout(tensor.layout_id));
    if (tensor.buffer_id == 0) return text;
    const DeviceRange range = RangeOf(trace_, tensor);
    const Named* named = Around(range);
    if (named == nullptr) return text;
    return text + named->name + "+" + std::to_string(range.first - named->first);
  }

  const storage::Reader& trace_;
  const std::vector<Named> tensors_;
  const int64_t leaf_;
  Inside inside_;
  ByteSet written_;  // addresses
};

}  // namespace

const std::string& UnknownOperators::KeyOf(int32_t form) {
  const auto [found, fresh] = keys_.try_emplace(form);
  if (!fresh) return found->second;
  const WorkForm& own = work_.forms[static_cast<size_t>(form)];
  std::string& key = found->second;
  key = own.op->FullName();
  for (const storage::SignatureArgument& argument : *own.arguments) {
    key += "|" + (argument.HoldsTensors() ? "" : ValueText(argument));
    for (const storage::SlotRef& tensor : argument.tensors) {
      key += tensor.layout_id == 0 ? "none" : FormText(work_.trace->GetLayout(tensor.layout_id));
    }
  }
  return key;
}

void UnknownOperators::FindAlike() {
  found_alike_ = true;
  for (size_t call = 0; call < work_.size(); ++call) {
    if (!meaning::IsKnownNamespace(work_.op(call).name)) {
      alike_[KeyOf(work_.calls[call].form)].push_back(call);
    }
  }
}

CallsInside UnknownOperators::Judge(size_t call) {
  const auto [alone, fresh] = judged_alone_.try_emplace(call);
  if (!fresh) return alone->second;
  const Inside inside = Reading(work_, call).Read();
  CallsInside& judged = alone->second = inside.kind;
  if (judged != CallsInside::kRepeatable) return judged;
  if (!found_alike_) FindAlike();
  const std::string& key = KeyOf(work_.calls[call].form);
  const auto [of_all, first] = judged_.try_emplace(key, CallsInside::kRepeatable);
  if (first) {
    for (const size_t other : alike_[key]) {
      const Inside there = Reading(work_, other).Read();
      if (there.kind == CallsInside::kRepeatable && there.text == inside.text) continue;
      of_all->second = CallsInside::kChanging;
      break;
    }
  }
  return judged = of_all->second;
}

}  // namespace acltape::analyzer
