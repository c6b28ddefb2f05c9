// A leaf without a lowering rule is lowered to the calls that were recorded inside of it.
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/lowering/lowering.h"
#include "tests/analyzer/acl_trace_builder.h"

namespace acltape::analyzer {
namespace {

using lowering::Lowering;
using lowering::OperandMemory;
using test::AclTraceBuilder;
using test::In;
using test::Out;
using test::Tensor;

// A block of the device with the input of a leaf, its result, and room for more.
struct Memory {
  explicit Memory(AclTraceBuilder& builder)
      : trace(builder), stream(trace.NewStream()), block(trace.Device({64})) {}
  AclTraceBuilder& trace;
  int64_t stream;
  Tensor block;
  AclTraceBuilder::InBlock x = trace.NewInBlock(block, {4}, 0);
  AclTraceBuilder::InBlock y = trace.NewInBlock(block, {4}, 0x20);
  AclTraceBuilder::InBlock other = trace.NewInBlock(block, {4}, 0x40);

  void Relu(const Tensor& from, const Tensor& to) {
    trace.Op("aclnnRelu", stream, {In("self", from), Out("out", to)});
  }
};

struct Result {
  std::optional<Lowering> lowering;
  std::string why;
  int64_t x = 0, y = 0;  // buffers of PyTorch's tensors
};

// Lowers wild::op(x) -> y, inside of which `inside` issues calls.
Result LowerWildOperator(const std::string& name, const std::function<void(Memory&)>& inside) {
  const test::TemporaryTrace file("recorded_calls_" + name);
  Result result;
  {
    AclTraceBuilder trace(file.path());
    Memory memory(trace);
    result.x = memory.x.tensor.buffer;
    result.y = memory.y.tensor.buffer;
    trace.Call("wild::op", {In("x", memory.x.tensor)}, {Out("", memory.y.tensor)});
    trace.Leaf(trace.last_call());
    inside(memory);
    trace.Leaf(0);
    trace.Finish();
  }
  const storage::Reader reader(file.path(), storage::TracePart{"", storage::Level::kAten});
  const Program program = LoadProgram(reader);
  result.lowering = lowering::Lower(program, program.leaves.at(0), &result.why);
  return result;
}

TEST(RecordedCalls, AreRepeatedOnTheTensorsOfTheLeafAndOnTemporaries) {
  const Result result = LowerWildOperator("repeated", [](Memory& memory) {
    memory.Relu(memory.x.place, memory.other.place);
    memory.Relu(memory.other.place, memory.y.place);
  });
  ASSERT_TRUE(result.lowering) << result.why;
  EXPECT_EQ(result.lowering->temporaries, std::vector<int64_t>{16});
  ASSERT_EQ(result.lowering->invocations.size(), 2u);
  const auto operand = [&](size_t call, size_t argument) {
    return result.lowering->invocations[call].arguments[argument].tensors[0];
  };
  EXPECT_EQ(operand(0, 0).memory, OperandMemory::Buffer(result.x));
  EXPECT_EQ(operand(0, 1).memory, OperandMemory::Temporary(0));
  EXPECT_EQ(operand(1, 0).memory, OperandMemory::Temporary(0));
  EXPECT_EQ(operand(1, 1).memory, OperandMemory::Buffer(result.y));
  for (const size_t call : {0, 1}) {
    for (const size_t argument : {0, 1}) {
      EXPECT_EQ(operand(call, argument).layout.byte_offset, 0) << call << " " << argument;
    }
  }
}

TEST(RecordedCalls, OneThatWasNotAskedForAResultGetsMemoryOfItsOwnForIt) {
  const Result result = LowerWildOperator("not_asked", [](Memory& memory) {
    memory.trace.Op("aclnnAddLayerNorm", memory.stream,
                    {In("x1", memory.x.place), test::Bool("additionalOutput", false),
                     Out("yOut", memory.y.place), Out("xOut", memory.other.place)});
  });
  ASSERT_TRUE(result.lowering) << result.why;
  const std::vector<lowering::LoweredValue>& arguments =
      result.lowering->invocations.at(0).arguments;
  EXPECT_EQ(arguments[2].tensors[0].memory, OperandMemory::Buffer(result.y));
  EXPECT_EQ(arguments[3].tensors[0].memory, OperandMemory::Temporary(0));
  EXPECT_EQ(arguments[3].tensors[0].layout.byte_offset, 0);
  EXPECT_EQ(result.lowering->temporaries, std::vector<int64_t>{16});
}

// All tensors of an allocator's block are in one buffer at the ACL level.
TEST(AclLeaves, AResultThatWasNotAskedForGetsMemoryOfItsOwnAlsoInABufferOfOthers) {
  const test::TemporaryTrace file("acl_leaf_not_asked");
  int64_t block = 0;
  {
    AclTraceBuilder trace(file.path());
    Memory memory(trace);
    block = memory.block.buffer;
    trace.Op("aclnnAddLayerNorm", memory.stream,
             {In("x1", memory.x.place), test::Bool("additionalOutput", false),
              Out("yOut", memory.y.place), Out("xOut", memory.other.place)});
    trace.Finish();
  }
  const storage::Reader reader(file.path(), storage::TracePart{"", storage::Level::kAcl});
  const Program program = LoadProgram(reader);
  std::string why;
  const std::optional<Lowering> lowering = lowering::Lower(program, program.leaves.at(0), &why);
  ASSERT_TRUE(lowering) << why;
  const std::vector<lowering::LoweredValue>& arguments = lowering->invocations.at(0).arguments;
  EXPECT_EQ(arguments[0].tensors[0].memory, OperandMemory::Buffer(block));
  EXPECT_EQ(arguments[2].tensors[0].memory, OperandMemory::Buffer(block));
  EXPECT_EQ(arguments[2].tensors[0].layout.byte_offset, 0x20);
  EXPECT_EQ(arguments[3].tensors[0].memory, OperandMemory::Temporary(0));
  EXPECT_EQ(arguments[3].tensors[0].layout.byte_offset, 0);
  EXPECT_EQ(lowering->temporaries, std::vector<int64_t>{16});
}

TEST(RecordedCalls, AResultThatNoneWasAskedForNeedsNoWriter) {
  const Result result = LowerWildOperator("not_written", [](Memory& memory) {
    memory.trace.Op("aclnnAddLayerNorm", memory.stream,
                    {In("x1", memory.x.place), test::Bool("additionalOutput", false),
                     Out("yOut", memory.other.place), Out("xOut", memory.y.place)});
  });
  ASSERT_TRUE(result.lowering) << result.why;
  EXPECT_EQ(result.lowering->invocations.at(0).arguments[3].tensors[0].memory,
            OperandMemory::Buffer(result.y));
}

struct Refused {
  const char* name;
  std::function<void(Memory&)> inside;
  const char* why;
};

TEST(RecordedCalls, AreNotRepeatedWhereTheyDoNotTellTheWholeLeaf) {
  const Refused rows[] = {
      {"hidden", [](Memory& memory) { memory.Relu(memory.other.place, memory.y.place); },
       "reads memory that is none of its arguments"},
      {"unfinished", [](Memory& memory) { memory.Relu(memory.x.place, memory.other.place); },
       "do not write all of its results"},
      {"copy",
       [](Memory& memory) {
         memory.Relu(memory.x.place, memory.y.place);
         memory.trace.Synchronize(memory.stream);
         memory.trace.Download(memory.block, std::vector<float>(64), memory.stream);
       },
       "which is no operator"},
  };
  for (const Refused& row : rows) {
    const Result result = LowerWildOperator(row.name, row.inside);
    EXPECT_FALSE(result.lowering) << row.name;
    EXPECT_NE(result.why.find(row.why), std::string::npos) << row.name << ": " << result.why;
  }
}

TEST(RecordedCalls, WithoutCallsOfTheDeviceThereIsNothingToSay) {
  const Result result = LowerWildOperator("none", [](Memory&) {});
  EXPECT_FALSE(result.lowering);
  EXPECT_EQ(result.why, "no lowering rule for wild::op");
}

}  // namespace
}  // namespace acltape::analyzer
