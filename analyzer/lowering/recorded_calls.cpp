#include "analyzer/lowering/recorded_calls.h"

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

#include "analyzer/calls/acl_calls.h"
#include "analyzer/calls/acl_uses.h"
#include "analyzer/lowering/acl_leaf.h"
#include "analyzer/program/device_range.h"
#include "meaning/dialects.h"

namespace acltape::analyzer::lowering {
namespace {

// The calls cannot be repeated. The text says why.
class CannotRepeat : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Ranges of addresses, joined where they touch.
class Ranges {
 public:
  void Add(DeviceRange range) {
    std::erase_if(ranges_, [&](const DeviceRange& other) {
      if (range.end < other.first || other.end < range.first) return false;
      range = {std::min(range.first, other.first), std::max(range.end, other.end)};
      return true;
    });
    ranges_.push_back(range);
  }
  // The range that holds all of these bytes; null if there is none.
  const DeviceRange* Around(const DeviceRange& range) const {
    const auto found =
        std::find_if(ranges_.begin(), ranges_.end(), [&](const DeviceRange& candidate) {
          return candidate.first <= range.first && range.end <= candidate.end;
        });
    return found == ranges_.end() ? nullptr : &*found;
  }
  bool Meet(const DeviceRange& range) const {
    return std::any_of(ranges_.begin(), ranges_.end(),
                       [&](const DeviceRange& other) { return other.Overlaps(range); });
  }
  const std::vector<DeviceRange>& all() const { return ranges_; }

 private:
  std::vector<DeviceRange> ranges_;
};

// A call of an operator, with the ranges of its tensors.
struct Recorded {
  const storage::Op* op = nullptr;
  std::vector<storage::Argument> arguments;
  std::vector<ArgumentUse> uses;
};

class Repetition {
 public:
  Repetition(const Program& program, const Leaf& leaf)
      : trace_(*program.trace), uses_(program.uses[static_cast<size_t>(leaf.index)]) {
    for (const storage::Argument& argument : leaf.arguments) {
      if (!argument.HoldsTensors()) continue;
      for (const storage::TensorRef& tensor : argument.tensors) {
        if (tensor.buffer_id != 0) buffers_.push_back(tensor.buffer_id);
      }
    }
    TakeCalls(leaf);
  }

  bool HasCalls() const { return !calls_.empty(); }

  Lowering Lower() {
    FindTemporaries();
    Lowering lowering;
    for (const DeviceRange& range : temporaries_.all()) {
      lowering.temporaries.push_back(range.end - range.first);
    }
    for (const Recorded& call : calls_) {
      lowering.invocations.push_back(InvocationOf(trace_, *call.op, call.arguments));
      for (LoweredValue& value : lowering.invocations.back().arguments) {
        for (LoweredTensor& tensor : value.tensors) Place(tensor);
      }
    }
    CheckResults();
    return lowering;
  }

 private:
  void TakeCalls(const Leaf& leaf) {
    for (const storage::Call& call : trace_.CallsInside(leaf.call.call_id)) {
      const storage::Op& op = trace_.GetOp(call.op_id);
      if (!meaning::IsAclDialect(op.dialect)) continue;
      const AclCallKind kind = FindAclFunction(op.name).kind;
      if (kind == AclCallKind::kOperator) {
        if (call.status != 0) throw CannotRepeat("its recorded call of " + op.name + " failed");
        std::vector<storage::Argument> arguments = trace_.Arguments(call);
        std::vector<ArgumentUse> uses = UsesOfAclLeaf(op.name, LeafKind::kKernel, arguments);
        calls_.push_back({&op, std::move(arguments), std::move(uses)});
      } else if (IsDeviceWork(kind) || IsStreamTask(kind) || kind == AclCallKind::kUnknown) {
        throw CannotRepeat("it issued " + op.name + " too, which is no operator");
      }
    }
  }

  // The buffer of the leaf that holds the range; 0 if there is none.
  int64_t BufferAround(const DeviceRange& range) const {
    for (const int64_t id : buffers_) {
      const storage::Buffer& buffer = trace_.GetBuffer(id);
      if (buffer.address <= range.first && range.end <= buffer.address + buffer.bytes) return id;
    }
    return 0;
  }

  // All memory that is not the leaf's. What is read there must have been written before.
  void FindTemporaries() {
    for (const Recorded& call : calls_) {
      for (const ArgumentUse& use : call.uses) {
        const storage::TensorRef& tensor = TensorOf(call, use);
        const DeviceRange range = RangeOf(trace_, tensor);
        if (tensor.buffer_id == 0 || range.first == range.end) continue;
        const bool own = BufferAround(range) == 0;
        if (!use.write) {
          if (own && written_.Around(range) == nullptr) {
            throw CannotRepeat("its recorded call of " + call.op->name +
                               " reads memory that is none of its arguments");
          }
          continue;
        }
        written_.Add(range);
        if (own) temporaries_.Add(range);
      }
    }
  }

  void Place(LoweredTensor& tensor) const {
    if (!tensor.present || tensor.memory.buffer() == 0) return;
    const int64_t base = trace_.GetBuffer(tensor.memory.buffer()).address;
    const DeviceRange range{base + tensor.layout.FirstByte(), base + tensor.layout.EndByte()};
    int64_t start = 0;  // the address of the memory in which the tensor is placed
    if (const int64_t buffer = BufferAround(range); buffer != 0) {
      tensor.memory = OperandMemory::Buffer(buffer);
      start = trace_.GetBuffer(buffer).address;
    } else if (const DeviceRange* around = temporaries_.Around(range); around != nullptr) {
      tensor.memory =
          OperandMemory::Temporary(static_cast<int32_t>(around - temporaries_.all().data()));
      start = around->first;
    } else {
      throw CannotRepeat("a tensor of its recorded calls lies in memory that is not known");
    }
    tensor.layout.byte_offset += base - start;
  }

  // A result has to be written whole, and an argument that the leaf changes at some place.
  void CheckResults() const {
    for (const TensorUse& use : uses_.writes) {
      if (use.layout->ElementCount() == 0) continue;
      const DeviceRange range = RangeOf(trace_, use.tensor);
      const bool changed =
          std::any_of(uses_.reads.begin(), uses_.reads.end(), [&](const TensorUse& read) {
            return read.argument == use.argument && read.element == use.element;
          });
      if (changed ? !written_.Meet(range) : written_.Around(range) == nullptr) {
        throw CannotRepeat("its recorded calls do not write all of its results");
      }
    }
  }

  static const storage::TensorRef& TensorOf(const Recorded& call, const ArgumentUse& use) {
    return call.arguments[static_cast<size_t>(use.argument)]
        .tensors[static_cast<size_t>(use.element)];
  }

  const storage::Reader& trace_;
  const LeafUses& uses_;
  std::vector<int64_t> buffers_;  // the leaf has its tensors in these
  std::vector<Recorded> calls_;
  Ranges written_, temporaries_;
};

}  // namespace

std::optional<Lowering> LowerAsRecorded(const Program& program, const Leaf& leaf,
                                        std::string* why) {
  try {
    Repetition repetition(program, leaf);
    if (!repetition.HasCalls()) return std::nullopt;
    return repetition.Lower();
  } catch (const CannotRepeat& cause) {
    if (why != nullptr) *why = cause.what();
    return std::nullopt;
  }
}

}  // namespace acltape::analyzer::lowering
