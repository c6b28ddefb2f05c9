// The memory that the operator calls of a script read and write.
#include "replayer/engine/script_operands.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

namespace acltape::replayer {
namespace {

using analyzer::lowering::LoweredTensor;
using analyzer::lowering::LoweredValue;
using analyzer::lowering::OperandMemory;

LoweredValue InBlock(int block, int64_t count = 4) {
  LoweredTensor tensor;
  tensor.present = true;
  tensor.memory = OperandMemory::Block(block);
  tensor.layout.dtype = storage::DType::kFloat32;
  tensor.layout.shape = {count};
  tensor.layout.strides = {1};
  LoweredValue value;
  value.kind = storage::ValueKind::kTensor;
  value.tensors.push_back(std::move(tensor));
  return value;
}

// "1r 2rw 3w": blocks of the operands and what happens to them.
std::string Operands(std::string op, std::vector<LoweredValue> arguments) {
  ScriptCall call;
  call.invocation = {std::move(op), std::move(arguments)};
  std::string text;
  for (const ScriptOperand& operand : OperandsOf(call)) {
    text += (text.empty() ? "" : " ") + std::to_string(operand.tensor->memory.block()) +
            (operand.read ? "r" : "") + (operand.write ? "w" : "");
  }
  return text;
}

TEST(ScriptOperands, DirectionsAreThoseOfTheOperatorTable) {
  EXPECT_EQ(Operands("aclnnAdd", {InBlock(1), InBlock(2), {}, InBlock(3)}), "1r 2r 3w");
  EXPECT_EQ(Operands("aclnnInplaceAdd", {InBlock(1), InBlock(2), {}}), "1rw 2r");
}

// Some operators write another argument than the first one in place.
TEST(ScriptOperands, ABatchNormReadsItsInputAndWritesItsRunningStatistics) {
  EXPECT_EQ(Operands("aclnnBatchNorm", {InBlock(1),
                                        InBlock(2),
                                        InBlock(3),
                                        InBlock(4),
                                        InBlock(5),
                                        {},
                                        {},
                                        {},
                                        InBlock(6),
                                        InBlock(7),
                                        InBlock(8)}),
            "1r 2r 3r 4rw 5rw 6w 7w 8w");
}

TEST(ScriptOperands, AbsentAndEmptyTensorsAreNoOperands) {
  EXPECT_EQ(Operands("aclnnAdd", {InBlock(1, 0), InBlock(2), {}, InBlock(3)}), "2r 3w");
  LoweredValue absent = InBlock(1);
  absent.tensors[0].present = false;
  EXPECT_EQ(Operands("aclnnAdd", {absent, InBlock(2), {}, InBlock(3)}), "2r 3w");
}

TEST(ScriptOperands, AnUnknownOperatorMayReadAndWriteAll) {
  EXPECT_EQ(Operands("aclnnNobodyKnows", {InBlock(1), InBlock(2)}), "1rw 2rw");
}

TEST(OperandMemory, ABlockIsNoBuffer) {
  EXPECT_EQ(OperandMemory::Buffer(7).buffer(), 7);
  EXPECT_EQ(OperandMemory().buffer(), 0) << "an operand without memory has no buffer";
  EXPECT_EQ(OperandMemory::Buffer(0), OperandMemory());
  EXPECT_THROW(OperandMemory::Block(7).buffer(), std::logic_error);
  EXPECT_THROW(OperandMemory::Buffer(7).block(), std::logic_error);
  EXPECT_THROW(OperandMemory::Temporary(0).buffer(), std::logic_error);
  EXPECT_THROW(OperandMemory().block(), std::logic_error);
}

}  // namespace
}  // namespace acltape::replayer
