#include "analyzer/lowering/recorded_calls.h"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

#include "analyzer/calls/acl_calls.h"
#include "analyzer/calls/acl_uses.h"
#include "analyzer/calls/byte_set.h"
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

// A call of an operator, with the tensors that it reads and writes.
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
    for (const DeviceRange& range : temporaries_) {
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
      if (DeviceRange{buffer.address, buffer.address + buffer.bytes}.Holds(range)) return id;
    }
    return 0;
  }

  // All memory that is not the leaf's. What is read there must have been written before.
  void FindTemporaries() {
    ByteSet temporaries;
    for (const Recorded& call : calls_) {
      for (const ArgumentUse& use : call.uses) {
        const storage::TensorRef& tensor = TensorOf(call, use);
        const DeviceRange range = RangeOf(trace_, tensor);
        if (tensor.buffer_id == 0 || range.first == range.end) continue;
        const bool own = BufferAround(range) == 0;
        if (!use.write) {
          if (own && !written_.Covers(range.first, range.end)) {
            throw CannotRepeat("its recorded call of " + call.op->name +
                               " reads memory that is none of its arguments");
          }
          continue;
        }
        written_.Add(range.first, range.end);
        if (own) temporaries.Add(range.first, range.end);
      }
      AddLeftAlone(call);
    }
    for (const ByteRange& part : temporaries.Within(0, std::numeric_limits<int64_t>::max())) {
      temporaries_.push_back({part.first, part.end});
    }
  }

  // Results that the call was not asked for.
  void AddLeftAlone(const Recorded& call) {
    for (size_t a = 0; a < call.arguments.size(); ++a) {
      const storage::Argument& argument = call.arguments[a];
      if (argument.direction == storage::Direction::kIn || IsIncidental(argument)) continue;
      const bool written =
          std::any_of(call.uses.begin(), call.uses.end(), [&](const ArgumentUse& use) {
            return use.write && static_cast<size_t>(use.argument) == a;
          });
      if (written) continue;
      for (const storage::TensorRef& tensor : argument.tensors) {
        if (tensor.buffer_id == 0) continue;
        const DeviceRange range = RangeOf(trace_, tensor);
        left_alone_.Add(range.first, range.end);
      }
    }
  }

  void Place(LoweredTensor& tensor) const {
    if (!tensor.present || tensor.memory.buffer() == 0) return;
    const int64_t base = trace_.GetBuffer(tensor.memory.buffer()).address;
    const DeviceRange range{base + tensor.layout.FirstByte(), base + tensor.layout.EndByte()};
    if (const int64_t buffer = BufferAround(range); buffer != 0) {
      tensor.memory = OperandMemory::Buffer(buffer);
      tensor.layout.byte_offset += base - trace_.GetBuffer(buffer).address;
      return;
    }
    const auto around =
        std::find_if(temporaries_.begin(), temporaries_.end(),
                     [&](const DeviceRange& temporary) { return temporary.Holds(range); });
    if (around == temporaries_.end()) return;  // it is neither read nor written
    tensor.memory = OperandMemory::Temporary(static_cast<int32_t>(around - temporaries_.begin()));
    tensor.layout.byte_offset += base - around->first;
  }

  // A result has to be written whole, unless a call was not asked for it, and an argument that the
  // leaf changes at some place.
  void CheckResults() const {
    ByteSet told = written_;
    told.Add(left_alone_);
    for (const TensorUse& use : uses_.writes) {
      if (use.layout->ElementCount() == 0) continue;
      const DeviceRange range = RangeOf(trace_, use.tensor);
      const bool changed =
          std::any_of(uses_.reads.begin(), uses_.reads.end(), [&](const TensorUse& read) {
            return read.argument == use.argument && read.element == use.element;
          });
      if (changed ? written_.Within(range.first, range.end).empty()
                  : !told.Covers(range.first, range.end)) {
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
  ByteSet written_;  // addresses
  ByteSet left_alone_;
  std::vector<DeviceRange> temporaries_;  // by their number
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
