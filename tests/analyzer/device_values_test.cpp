// Values of PyTorch's tensors on a device come from the device's calls, where they fit.
#include "analyzer/program/device_values.h"

#include <gtest/gtest.h>

#include "analyzer/calls/level.h"
#include "analyzer/calls/work.h"
#include "analyzer/lowering/lowering.h"
#include "analyzer/program/program.h"
#include "analyzer/program/queue_copies.h"
#include "analyzer/program/source_lines.h"
#include "storage/database.h"
#include "tests/analyzer/both_levels.h"

namespace acltape::analyzer {
namespace {

using test::BothLevels;
using test::In;
using test::Int;
using test::Out;
using test::Tensor;
using test::Written;

const std::vector<float> kOnes{1, 1, 1, 1};
const std::vector<float> kTwos{2, 2, 2, 2};

class DeviceValues : public ::testing::Test {
 protected:
  // The result of the leaf `call` after the values were taken over; empty when it has none.
  std::vector<float> Result(int64_t call) {
    const storage::Reader reader(file_.path());
    for (const storage::Snapshot& snapshot : reader.Snapshots()) {
      if (snapshot.call_id != call || !snapshot.after) continue;
      const std::vector<uint8_t> bytes = reader.Payload(snapshot.digest);
      std::vector<float> values(bytes.size() / sizeof(float));
      std::memcpy(values.data(), bytes.data(), bytes.size());
      return values;
    }
    return {};
  }
  int64_t Take() {
    storage::Reader reader(file_.path(), storage::Reader::Mode::kReadWrite);
    storage::Results results(reader);
    NameLeavesOfQueueCopies(reader, results);
    return TakeDeviceValues(reader, results);
  }

  test::TemporaryTrace file_{"device_values"};
};

TEST_F(DeviceValues, TheValueThatTheLeafsOperatorLeftAtTheSameAddressIsTaken) {
  int64_t leaf = 0;
  {
    BothLevels trace(file_.path());
    const Tensor block = trace.OnDevice({64}, 0x10000);
    const Tensor x = trace.OnDevice({2, 2}, 0x10000);
    const Tensor y = trace.OnDevice({2, 2}, 0x10020);
    leaf = trace.Call("aten::relu", {In("self", x)}, {Out("out", y)}).last_call();
    // The device sees one dimension, and another value in front.
    trace.Launch(
        leaf, "aclnnRelu",
        {In("self", trace.InBlock(block, {4}, 0)), Out("out", trace.InBlock(block, {4}, 0x20))});
    trace.After("out", kOnes);
    trace.Finish();
  }
  EXPECT_EQ(Take(), 1);
  EXPECT_EQ(Result(leaf), kOnes);
}

// Calls of the queue's thread, in the order of its work: one of a leaf that writes y, one that
// names no leaf and writes a cache, and one of another leaf. Returns the leaf that the call in the
// middle got. `writers`: which leaves write that cache; the first leaf has the id 1, one between
// them 3.
enum class Writers : uint8_t {
  kNone,
  kFirst,
  kBetween,
  kBoth,
  kBothOneByItsCall,
  kLater,
  kElsewhere
};
int64_t LeafOfCallBetween(const std::string& path, bool one_leaf,
                          Writers writers = Writers::kNone) {
  int64_t between = 0;
  {
    BothLevels trace(path);
    const Tensor block = trace.OnDevice({64}, 0x10000);
    const Tensor x = trace.OnDevice({4}, 0x10000);
    const Tensor y = trace.OnDevice({4}, 0x10020);
    const Tensor kept = trace.OnDevice({8}, 0x10080);
    const Tensor on_device = trace.InBlock(block, {4}, 0);
    const Tensor cache = trace.InBlock(block, {4}, 0x80);
    const bool both_write = writers == Writers::kBoth || writers == Writers::kBothOneByItsCall;
    const bool elsewhere = writers == Writers::kElsewhere;
    const bool first_writes = writers == Writers::kFirst || both_write || elsewhere;
    const int64_t first =
        trace.Call("vllm::attention", {In("x", x)}, {Out("out", first_writes ? kept : y)})
            .last_call();
    trace.Call("aten::view(Tensor(a) self) -> Tensor(a)", {In("self", kept)}, {Out("out", kept)});
    if (writers == Writers::kBetween || both_write) {
      trace.Call("atb::reshape", {In("x", x)}, {Out("out", kept)});
    }
    if (elsewhere) trace.CallElsewhere("atb::reshape", {In("x", x), Out("out", kept)});
    int64_t second = first;
    const auto call_second = [&](const Tensor& result) {
      second = trace.Call("aten::relu", {In("self", x)}, {Out("out", result)}).last_call();
    };
    if (!one_leaf && writers != Writers::kLater) call_second(y);
    const bool by_its_call = writers == Writers::kBothOneByItsCall;
    trace.Launch(first, "aclnnRelu",
                 {In("self", on_device), Out("out", by_its_call ? cache : on_device)});
    trace.Launch(0, "aclnnScatterPaKvCache", {In("key", on_device), Out("keyCacheRef", cache)});
    between = trace.last_call();
    if (writers == Writers::kLater) call_second(kept);
    trace.Launch(second, "aclnnRelu", {In("self", on_device), Out("out", on_device)});
    trace.Finish();
  }
  storage::Reader reader(path, storage::Reader::Mode::kReadWrite);
  storage::Results results(reader);
  NameLeavesOfQueueCopies(reader, results);
  results.Commit();
  for (const storage::Call& call : storage::Reader(path).Calls(/*leaves_only=*/false)) {
    if (call.call_id == between) return call.parent_id;
  }
  return -1;
}

TEST_F(DeviceValues, ACallOfTheQueueBetweenTwoOfALeafIsOfThatLeaf) {
  EXPECT_EQ(LeafOfCallBetween(file_.path(), true), 1);
}

TEST_F(DeviceValues, ACallOfTheQueueBetweenTwoLeavesHasNoneIfNoneWritesItsMemory) {
  EXPECT_EQ(LeafOfCallBetween(file_.path(), false), 0);
}

TEST_F(DeviceValues, ACallOfTheQueueBetweenTwoLeavesIsOfTheOneThatWritesItsMemory) {
  EXPECT_EQ(LeafOfCallBetween(file_.path(), false, Writers::kFirst), 1);
}

TEST_F(DeviceValues, SoItIsOfALeafWhoseCallsAllNameNone) {
  EXPECT_EQ(LeafOfCallBetween(file_.path(), false, Writers::kBetween), 3);
}

// Ranks that were forked have the same addresses.
TEST_F(DeviceValues, ALeafOfAnotherProcessWritesOtherMemoryAtTheSameAddress) {
  EXPECT_EQ(LeafOfCallBetween(file_.path(), false, Writers::kElsewhere), 1);
}

TEST_F(DeviceValues, ACallOfTheQueueWhoseMemoryTwoLeavesWriteHasNone) {
  EXPECT_EQ(LeafOfCallBetween(file_.path(), false, Writers::kBoth), 0);
}

TEST_F(DeviceValues, ALeafThatCameAfterACallOfTheQueueDidNotAskForIt) {
  EXPECT_EQ(LeafOfCallBetween(file_.path(), false, Writers::kLater), 0);
}

TEST_F(DeviceValues, AWriterWhoseOwnCallWroteTheMemoryIsNotMeant) {
  EXPECT_EQ(LeafOfCallBetween(file_.path(), false, Writers::kBothOneByItsCall), 3);
}

TEST_F(DeviceValues, TheLastOfSeveralWritersCounts) {
  int64_t leaf = 0;
  {
    BothLevels trace(file_.path());
    const Tensor block = trace.OnDevice({64}, 0x10000);
    const Tensor y = trace.OnDevice({4}, 0x10000);
    const Tensor there = trace.InBlock(block, {4}, 0);
    leaf = trace.Call("aten::fill_.Scalar", {Written("self", y)}).last_call();
    trace.Launch(leaf, "aclnnInplaceZero", {Written("self", there)}).After("self", kOnes);
    trace.Launch(leaf, "aclnnInplaceFillScalar", {Written("self", there)}).After("self", kTwos);
    trace.Finish();
  }
  EXPECT_EQ(Take(), 1);
  EXPECT_EQ(Result(leaf), kTwos);
}

// The adapter's own thread puts the copy of a tensor that came from the host on the device. Its
// call has no parent.
class CopiesOfTheAdaptersThread : public DeviceValues {
 protected:
  static constexpr int64_t kAddress = 0x10000;

  // A leaf that brings `host` to the address at which all these tests have their tensor.
  int64_t ToDevice(BothLevels& trace, const Tensor& host) {
    const Tensor x = trace.OnDevice(host.layout.shape, kAddress);
    return trace.Call("aten::_to_copy", {In("self", host), Out("out", x)}).last_call();
  }
  // A leaf that computes there from a number on the host.
  int64_t AddNumber(BothLevels& trace) {
    const Tensor number = trace.NewTensor({}, storage::DType::kFloat64);
    const Tensor x = trace.OnDevice({4}, kAddress + 0x80);
    const Tensor sum = trace.OnDevice({4}, kAddress);
    return trace.Call("aten::add.Tensor", {In("self", x), In("other", number), Out("out", sum)})
        .last_call();
  }
  // An operator of a leaf.
  void Compute(BothLevels& trace, int64_t leaf, int64_t offset,
               const std::vector<float>& left = kOnes) {
    const Tensor there = trace.InBlock(trace.OnDevice({64}, kAddress), {4}, offset);
    trace.Launch(leaf, "aclnnAdds", {In("self", there), Out("out", there)}).After("out", left);
  }
  void Copy(BothLevels& trace, int64_t source, const std::vector<float>& bytes,
            int64_t thread = BothLevels::kQueue) {
    const Tensor there = trace.InBlock(trace.OnDevice({64}, kAddress), {4}, 0);
    trace.Launch(0, "aclrtMemcpyAsync",
                 {Out("dst", there), Int("destMax", 16), Int("src", source), Int("count", 16),
                  Int("kind", 1)},
                 "aclrt", thread);
    trace.FromHost(trace.NewTensor({4}), bytes);
  }
  static int64_t AddressOf(const Tensor& host) { return 0x1000 * host.buffer; }
};

TEST_F(CopiesOfTheAdaptersThread, GoToTheLeavesThatAskedForThemInOrder) {
  std::vector<int64_t> leaves;
  {
    BothLevels trace(file_.path());
    const Tensor host = trace.NewTensor({4});
    for (int batch = 0; batch < 2; ++batch) leaves.push_back(ToDevice(trace, host));
    Copy(trace, AddressOf(host), kOnes);
    Copy(trace, AddressOf(host), kTwos);
    const int64_t later = trace.Call("aten::neg_", {Written("self", host)}).last_call();
    Compute(trace, later, 0x40);
    Copy(trace, AddressOf(host), {3, 3, 3, 3});  // no leaf asked for these
    trace.Finish();
  }
  EXPECT_EQ(Take(), 2);
  EXPECT_EQ(Result(leaves[0]), kOnes);
  EXPECT_EQ(Result(leaves[1]), kTwos);
}

// The memory of the sum is freed, and a batch that comes later gets it.
TEST_F(CopiesOfTheAdaptersThread, AreNoResultOfALeafWhoseOperatorWroteTheSameBytesBefore) {
  int64_t sum = 0;
  int64_t batch = 0;
  {
    BothLevels trace(file_.path());
    sum = AddNumber(trace);
    Compute(trace, sum, 0);
    const Tensor host = trace.NewTensor({4});
    batch = ToDevice(trace, host);
    Copy(trace, AddressOf(host), kTwos);
    trace.Finish();
  }
  EXPECT_EQ(Take(), 2);
  EXPECT_EQ(Result(sum), kOnes);
  EXPECT_EQ(Result(batch), kTwos);
}

// torch.tensor copies so, in the thread of the program.
TEST_F(CopiesOfTheAdaptersThread, AreNotThoseOfAThreadThatRunsLeaves) {
  int64_t leaf = 0;
  {
    BothLevels trace(file_.path());
    const Tensor host = trace.NewTensor({4});
    leaf = ToDevice(trace, host);
    Copy(trace, AddressOf(host), kTwos, BothLevels::kProgram);
    trace.Finish();
  }
  EXPECT_EQ(Take(), 0);
  EXPECT_EQ(Result(leaf), std::vector<float>{});
}

// The copy of the first leaf was not recorded.
TEST_F(CopiesOfTheAdaptersThread, AreOfNoLeafThatEndedBeforeWorkThatTheThreadHasIssued) {
  int64_t first = 0;
  int64_t second = 0;
  {
    BothLevels trace(file_.path());
    const Tensor host = trace.NewTensor({4});
    first = ToDevice(trace, host);
    Compute(trace, trace.Call("aten::neg_", {Written("self", host)}).last_call(), 0x40);
    second = ToDevice(trace, host);
    Copy(trace, AddressOf(host), kTwos);
    trace.Finish();
  }
  EXPECT_EQ(Take(), 1);
  EXPECT_EQ(Result(first), std::vector<float>{});
  EXPECT_EQ(Result(second), kTwos);
}

// A recording began when the first copy was in the queue, and its leaf over.
TEST_F(CopiesOfTheAdaptersThread, AreOfNoLeafThatBeganAfterWorkThatTheThreadHasStillToIssue) {
  int64_t leaf = 0;
  {
    BothLevels trace(file_.path());
    const Tensor host = trace.NewTensor({4});
    const int64_t before = trace.Call("aten::neg_", {Written("self", host)}).last_call();
    leaf = ToDevice(trace, host);
    Copy(trace, AddressOf(host), kOnes);
    Compute(trace, before, 0x40);
    Copy(trace, AddressOf(host), kTwos);
    trace.Finish();
  }
  EXPECT_EQ(Take(), 1);
  EXPECT_EQ(Result(leaf), kTwos);
}

TEST_F(CopiesOfTheAdaptersThread, GetTheirLeafAsParentWithItsLine) {
  int64_t leaf = 0;
  int64_t copy = 0;
  {
    BothLevels trace(file_.path());
    const Tensor host = trace.NewTensor({4});
    trace.Line("train.py", 7);
    leaf = ToDevice(trace, host);
    trace.NoLine();
    Copy(trace, AddressOf(host), kOnes);
    copy = trace.last_call();
    trace.Finish();
  }
  Take();
  const storage::Reader reader(file_.path());
  storage::Statement parent(reader.database(), "SELECT parent_id FROM call WHERE call_id = ?");
  parent.Bind(1, copy);
  ASSERT_TRUE(parent.Next());
  EXPECT_EQ(parent.Integer(0), leaf);
  EXPECT_EQ(SourceLines(reader).Of(copy), "train.py:7 (forward)");
}

TEST_F(CopiesOfTheAdaptersThread, HaveNoLeafWhereTheyAreMoreThanTheLeaves) {
  int64_t leaf = 0;
  {
    BothLevels trace(file_.path());
    const Tensor host = trace.NewTensor({4});
    leaf = ToDevice(trace, host);
    Copy(trace, AddressOf(host), kOnes);
    Copy(trace, AddressOf(host), kTwos);
    trace.Finish();
  }
  EXPECT_EQ(Take(), 0);
  EXPECT_EQ(Result(leaf), std::vector<float>{});
}

TEST_F(CopiesOfTheAdaptersThread, AreOfTheLeafThatReadsWhereTheyRead) {
  int64_t first = 0;
  int64_t second = 0;
  {
    BothLevels trace(file_.path());
    const Tensor one = trace.NewTensor({4});
    const Tensor other = trace.NewTensor({4});
    first = ToDevice(trace, one);
    second = ToDevice(trace, other);
    Copy(trace, AddressOf(other), kTwos);
    trace.Finish();
  }
  EXPECT_EQ(Take(), 1);
  EXPECT_EQ(Result(first), std::vector<float>{});
  EXPECT_EQ(Result(second), kTwos);
}

// The host makes another tensor of it first, at an address of its own.
TEST_F(CopiesOfTheAdaptersThread, ReadElsewhereWhereTheSourceIsOfAnotherType) {
  int64_t leaf = 0;
  {
    BothLevels trace(file_.path());
    leaf = ToDevice(trace, trace.NewTensor({4}, storage::DType::kFloat64));
    Copy(trace, 0x7000, kTwos);
    trace.Finish();
  }
  EXPECT_EQ(Take(), 1);
  EXPECT_EQ(Result(leaf), kTwos);
}

// Two ranks of one program have equal addresses.
TEST_F(CopiesOfTheAdaptersThread, AreOfNoLeafOfAnotherProcess) {
  int64_t leaf = 0;
  {
    BothLevels trace(file_.path());
    constexpr int64_t kQueueOfOther = 3;
    trace.writer().AddProcess(1, 100, "rank 0");
    trace.writer().AddProcess(2, 200, "rank 1");
    trace.writer().AddThread(BothLevels::kProgram, 1, 100, "main");
    trace.writer().AddThread(kQueueOfOther, 2, 201, "queue");
    const Tensor host = trace.NewTensor({4});
    leaf = ToDevice(trace, host);
    Copy(trace, AddressOf(host), kTwos, kQueueOfOther);
    trace.Finish();
  }
  EXPECT_EQ(Take(), 0);
  EXPECT_EQ(Result(leaf), std::vector<float>{});
}

// The gradient of a slice: zero everywhere, then a part.
TEST_F(DeviceValues, AResultThatWasWrittenInPartsIsPutTogether) {
  int64_t leaf = 0;
  {
    BothLevels trace(file_.path());
    const Tensor block = trace.OnDevice({64}, 0x10000);
    const Tensor y = trace.OnDevice({4}, 0x10000);
    leaf = trace.Call("aten::fill_.Scalar", {Written("self", y)}).last_call();
    trace.Launch(leaf, "aclnnInplaceZero", {Written("self", trace.InBlock(block, {4}, 0))});
    trace.After("self", kOnes);
    trace.Launch(leaf, "aclnnInplaceOne", {Written("self", trace.InBlock(block, {2}, 8))});
    trace.After("self", std::vector<float>{2, 2});
    trace.Finish();
  }
  EXPECT_EQ(Take(), 1);
  EXPECT_EQ(Result(leaf), (std::vector<float>{1, 1, 2, 2}));
}

// The second column of a matrix is written last: packed in the order of its elements.
TEST_F(DeviceValues, AStridedPartGoesToItsElements) {
  int64_t leaf = 0;
  {
    BothLevels trace(file_.path());
    const Tensor block = trace.OnDevice({64}, 0x10000);
    const Tensor y = trace.OnDevice({3, 2}, 0x10010);
    leaf = trace.Call("aten::fill_.Scalar", {Written("self", y)}).last_call();
    trace.Launch(leaf, "aclnnInplaceZero", {Written("self", trace.InBlock(block, {6}, 0x10))});
    trace.After("self", std::vector<float>{0, 0, 0, 0, 0, 0});
    Tensor column = trace.InBlock(block, {3}, 0x14);
    column.layout.strides = {2};
    trace.Launch(leaf, "aclnnInplaceCopy", {Written("selfRef", column)});
    trace.After("selfRef", std::vector<float>{1, 2, 3});
    trace.Finish();
  }
  EXPECT_EQ(Take(), 1);
  EXPECT_EQ(Result(leaf), (std::vector<float>{0, 1, 0, 2, 0, 3}));
}

// A result that is a view with gaps: what lies in the gaps need not be known, and is not kept.
TEST_F(DeviceValues, AResultWithGapsIsPutTogetherWithoutWhatLiesInTheGaps) {
  int64_t leaf = 0;
  {
    BothLevels trace(file_.path());
    const Tensor block = trace.OnDevice({64}, 0x10000);
    Tensor y = trace.OnDevice({5}, 0x10000);
    y.layout.shape = {3};
    y.layout.strides = {2};
    leaf = trace.Call("aten::fill_.Scalar", {Written("self", y)}).last_call();
    trace.Launch(leaf, "aclnnInplaceFillScalar", {Written("self", trace.InBlock(block, {2}, 0))});
    trace.After("self", std::vector<float>{1, 9});
    trace.Launch(leaf, "aclnnInplaceFillScalar", {Written("self", trace.InBlock(block, {1}, 8))});
    trace.After("self", std::vector<float>{2});
    trace.Launch(leaf, "aclnnInplaceFillScalar", {Written("self", trace.InBlock(block, {1}, 16))});
    trace.After("self", std::vector<float>{3});
    trace.Finish();
  }
  EXPECT_EQ(Take(), 1);
  EXPECT_EQ(Result(leaf), (std::vector<float>{1, 2, 3}));
}

TEST_F(DeviceValues, AResultOfWhichAPartIsUnknownHasNoValue) {
  int64_t leaf = 0;
  {
    BothLevels trace(file_.path());
    const Tensor block = trace.OnDevice({64}, 0x10000);
    const Tensor y = trace.OnDevice({4}, 0x10000);
    leaf = trace.Call("aten::fill_.Scalar", {Written("self", y)}).last_call();
    trace.Launch(leaf, "aclnnInplaceOne", {Written("self", trace.InBlock(block, {3}, 4))});
    trace.After("self", std::vector<float>{2, 2, 2});
    trace.Finish();
  }
  EXPECT_EQ(Take(), 0);
  EXPECT_EQ(Result(leaf), std::vector<float>{});
}

TEST_F(DeviceValues, PartsWithoutTheirBytesMakeNoValue) {
  int64_t leaf = 0;
  {
    BothLevels trace(file_.path());
    const Tensor block = trace.OnDevice({64}, 0x10000);
    const Tensor y = trace.OnDevice({4}, 0x10000);
    leaf = trace.Call("aten::fill_.Scalar", {Written("self", y)}).last_call();
    trace.Launch(leaf, "aclnnInplaceZero", {Written("self", trace.InBlock(block, {4}, 0))});
    trace.After("self", kOnes, /*payload=*/false);
    trace.Launch(leaf, "aclnnInplaceOne", {Written("self", trace.InBlock(block, {2}, 8))});
    trace.After("self", std::vector<float>{2, 2});
    trace.Finish();
  }
  EXPECT_EQ(Take(), 0);
  EXPECT_EQ(Result(leaf), std::vector<float>{});
}

TEST_F(DeviceValues, ACopyFromTheHostLeavesWhatItRead) {
  int64_t leaf = 0;
  {
    BothLevels trace(file_.path());
    const Tensor block = trace.OnDevice({64}, 0x10000);
    const Tensor host = trace.NewTensor({4});
    const Tensor y = trace.OnDevice({4}, 0x10040);
    leaf = trace.Call("aten::copy_", {Written("self", y), In("src", host)}).last_call();
    trace.Launch(leaf, "aclrtMemcpy",
                 {Out("dst", trace.InBlock(block, {4}, 0x40)), Int("destMax", 16), In("src", host)},
                 "aclrt");
    trace.FromHost(host, kTwos);
    trace.Finish();
  }
  EXPECT_EQ(Take(), 1);
  EXPECT_EQ(Result(leaf), kTwos);
}

TEST_F(DeviceValues, WhatAnotherLeafLaunchedIsNoValueOfThisOne) {
  {
    BothLevels trace(file_.path());
    const Tensor block = trace.OnDevice({64}, 0x10000);
    const Tensor x = trace.OnDevice({4}, 0x10000);
    const Tensor y = trace.OnDevice({4}, 0x10020);
    const int64_t first = trace.Call("aten::relu", {In("self", x)}, {Out("out", y)}).last_call();
    trace.Call("aten::neg_", {Written("self", y)});
    trace.Launch(first, "aclnnRelu", {Out("out", trace.InBlock(block, {4}, 0x40))});
    trace.After("out", kOnes);
    trace.Finish();
  }
  EXPECT_EQ(Take(), 0);
}

TEST_F(DeviceValues, LeavesOnADeviceThatTheTraceFollowsAreReplayedAtTheirLevel) {
  {
    BothLevels trace(file_.path());
    const Tensor x = trace.OnDevice({4}, 0x10000);
    const Tensor y = trace.OnDevice({4}, 0x10020);
    const int64_t leaf = trace.Call("aten::gelu", {In("self", x)}, {Out("out", y)}).last_call();
    trace.Launch(leaf, "aclnnGelu", {In("self", x), Out("out", y)}).After("out", kOnes);
    trace.Finish();
  }
  const storage::Reader reader(file_.path());
  EXPECT_EQ(ChooseLevel(reader), Level::kAten);
  // And lowered as the adapter does it: aclnnGelu, not the erf form of the CPU.
  const Program program = LoadProgram(reader);
  const auto lowering = lowering::Lower(program, program.leaves.at(0), nullptr);
  ASSERT_TRUE(lowering.has_value());
  EXPECT_EQ(lowering->invocations.at(0).op, "aclnnGelu");
  EXPECT_FALSE(lowering->note.has_value());
}

TEST_F(DeviceValues, AFusedStepOnADeviceStepsEachParameterAsTheAdapterDoes) {
  {
    BothLevels trace(file_.path());
    const auto list = [&](const char* name, const std::vector<int64_t>& shape, int64_t address) {
      test::Value value = test::List(
          name, {trace.OnDevice(shape, address), trace.OnDevice(shape, address + 0x100)});
      value.direction = storage::Direction::kInOut;
      return value;
    };
    const int64_t leaf =
        trace
            .Call("aten::_fused_adamw_",
                  {list("self", {3}, 0x1000), list("grads", {3}, 0x2000),
                   list("exp_avgs", {3}, 0x3000), list("exp_avg_sqs", {3}, 0x4000),
                   test::List("max_exp_avg_sqs", {}), list("state_steps", {}, 0x5000),
                   test::Real("lr", 0.5), test::Bool("amsgrad", false)})
            .last_call();
    trace.Launch(leaf, "aclnnApplyAdamWV2", {});
    trace.Finish();
  }
  const storage::Reader reader(file_.path());
  const Program program = LoadProgram(reader);
  std::string why;
  const auto lowering = lowering::Lower(program, program.leaves.at(0), &why);
  ASSERT_TRUE(lowering.has_value()) << why;
  ASSERT_EQ(lowering->invocations.size(), 4u);
  for (const size_t index : {0, 2}) {
    // The operator counts the steps before this one.
    EXPECT_EQ(lowering->invocations[index].op, "aclnnSubs");
    EXPECT_EQ(lowering->invocations[index + 1].op, "aclnnApplyAdamWV2");
    EXPECT_EQ(lowering->invocations[index + 1].arguments[5].tensors.at(0).memory,
              lowering->invocations[index].arguments[3].tensors.at(0).memory);
  }
}

TEST_F(DeviceValues, StepsFoundByTheirPeriodAreThoseOfOneLevelAndRangesThoseOfBoth) {
  for (const char* found_by : {"period", "range:step"}) {
    {
      BothLevels trace(file_.path());
      const Tensor x = trace.OnDevice({4}, 0x10000);
      const int64_t leaf = trace.Call("aten::neg_", {Written("self", x)}).last_call();
      trace.Launch(leaf, "aclnnInplaceNeg", {Written("self", x)});
      trace.writer().AddStep({0, 1, 2, found_by});
      trace.Finish();
    }
    const storage::Reader reader(file_.path());
    EXPECT_EQ(StepsOf(reader, Level::kAten).size(), 1u) << found_by;
    EXPECT_EQ(StepsOf(reader, Level::kAcl).size(), std::string(found_by) != "period" ? 1u : 0u);
    EXPECT_EQ(LoadWork(reader, Level::kAcl).steps.empty(), std::string(found_by) == "period");
  }
}

TEST_F(DeviceValues, AProgramThatExecutesItsOwnGraphsIsReplayedAtTheLevelOfTheDevice) {
  {
    BothLevels trace(file_.path());
    const Tensor x = trace.OnDevice({4}, 0x10000);
    const int64_t leaf = trace.Call("aten::neg_", {Written("self", x)}).last_call();
    trace.Launch(leaf, "aclnnInplaceNeg", {Written("self", x)}).After("self", kOnes);
    storage::Handle graph;
    graph.id = 1;
    graph.process_id = 1;
    trace.writer().AddModel(graph);
    trace.Finish();
  }
  const storage::Reader reader(file_.path());
  EXPECT_EQ(ChooseLevel(reader), Level::kAcl);
}

}  // namespace
}  // namespace acltape::analyzer
