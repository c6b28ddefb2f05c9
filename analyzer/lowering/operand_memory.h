// The memory of a tensor operand. The same operand lies in different memory at different stages: a
// lowering names buffers of the program and its own temporaries, a script names its blocks. One
// number for all of them would let a block pass as a buffer, so the kind goes with the number.
#pragma once

#include <cstdint>

namespace acltape::analyzer::lowering {

class OperandMemory {
 public:
  enum class Kind : uint8_t { kNone, kBuffer, kTemporary, kBlock };

  // No memory: an empty tensor.
  OperandMemory() = default;
  // A buffer of the trace. The id 0 means no memory.
  static OperandMemory Buffer(int64_t buffer_id) {
    return {buffer_id == 0 ? Kind::kNone : Kind::kBuffer, buffer_id};
  }
  // An index in Lowering::temporaries.
  static OperandMemory Temporary(int32_t index) { return {Kind::kTemporary, index}; }
  // An index in replayer::Script::blocks.
  static OperandMemory Block(int block) { return {Kind::kBlock, block}; }

  Kind kind() const { return kind_; }
  // The number. Throws std::logic_error if the memory is of another kind. The buffer of an operand
  // without memory is 0.
  int64_t buffer() const { return kind_ == Kind::kNone ? 0 : Number(Kind::kBuffer); }
  int32_t temporary() const { return static_cast<int32_t>(Number(Kind::kTemporary)); }
  int block() const { return static_cast<int>(Number(Kind::kBlock)); }

  bool operator==(const OperandMemory&) const = default;

 private:
  OperandMemory(Kind kind, int64_t number) : kind_(kind), number_(number) {}
  int64_t Number(Kind kind) const {
    if (kind_ != kind) ThrowWrongKind(kind_, kind);
    return number_;
  }
  [[noreturn]] static void ThrowWrongKind(Kind is, Kind asked);

  Kind kind_ = Kind::kNone;
  int64_t number_ = 0;
};

}  // namespace acltape::analyzer::lowering
