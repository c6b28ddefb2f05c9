// The next leaf that touches what a collective brought to a device has it as an input.
#include "analyzer/program/arrivals.h"

#include <gtest/gtest.h>

#include <functional>

#include "analyzer/program/device_values.h"
#include "analyzer/program/queue_copies.h"
#include "storage/database.h"
#include "tests/analyzer/both_levels.h"

namespace acltape::analyzer {
namespace {

using test::BothLevels;
using test::In;
using test::List;
using test::Out;
using test::Tensor;
using test::Value;
using test::Written;

constexpr const char* kSums = "c10d::allreduce_(Tensor[] tensors) -> Tensor[]";
constexpr const char* kReceives = "c10d::recv_(Tensor[] tensors) -> ()";
constexpr const char* kSends = "c10d::send(Tensor[] tensors) -> ()";
const std::vector<float> kFirst{1, 1, 1, 1};
const std::vector<float> kSummed{2, 2, 2, 2};

class Arrives : public ::testing::Test {
 protected:
  void Load(const std::function<void(BothLevels&)>& write) {
    {
      BothLevels trace(file_.path());
      write(trace);
      trace.Finish();
    }
    {
      storage::Reader reader(file_.path(), storage::Reader::Mode::kReadWrite);
      storage::Results results(reader);
      NameLeavesOfQueueCopies(reader, results);
      results.Commit();
    }
    {
      storage::Reader reader(file_.path(), storage::Reader::Mode::kReadWrite);
      storage::Results results(reader);
      TakeDeviceValues(reader, results);
      results.Commit();
    }
    reader_.emplace(file_.path());
    program_ = LoadProgram(*reader_);
  }

  // An input of a leaf: its first byte in the buffer, and its values.
  struct Found {
    int64_t first_byte = 0;
    std::vector<float> values;
    bool operator==(const Found&) const = default;
  };
  std::vector<Found> Before(size_t leaf) const {
    std::vector<Found> found;
    for (const storage::Snapshot& content : program_.leaves.at(leaf).before) {
      const auto bytes = program_.Payload(content.digest);
      Found one{FirstByteOf(program_, content), std::vector<float>(bytes->size() / sizeof(float))};
      std::memcpy(one.values.data(), bytes->data(), bytes->size());
      found.push_back(std::move(one));
    }
    return found;
  }

  test::TemporaryTrace file_{"arrivals"};
  std::optional<storage::Reader> reader_;
  Program program_;
};

// A sum over the ranks in a part of the buffer of `whole`, which has sixteen elements.
Tensor Reduce(BothLevels& trace, const Tensor& whole, int64_t offset,
              const std::vector<float>& sum = kSummed) {
  const Tensor part = trace.InBlock(whole, {4}, offset);
  const int64_t leaf = trace.Call(kSums, {List("tensors", {part})}).last_call();
  trace.Launch(leaf, "HcclAllReduce", {In("sendBuf", part), Out("recvBuf", part)}, "hccl");
  trace.After("recvBuf", sum);
  return part;
}

TEST_F(Arrives, AtTheNextReaderAndAtNoLaterOne) {
  Load([](BothLevels& trace) {
    const Tensor whole = trace.OnDevice({16}, 0x10000);
    const Tensor y = trace.OnDevice({4}, 0x20000);
    const Tensor part = Reduce(trace, whole, 16);
    trace.Call("aten::relu", {In("self", trace.InBlock(whole, {4}, 32))}, {Out("out", y)});
    trace.Call("aten::relu", {In("self", part)}, {Out("out", y)});
    trace.Call("aten::relu", {In("self", whole)}, {Out("out", trace.OnDevice({16}, 0x30000))});
  });
  ASSERT_EQ(program_.leaves.size(), 4U);
  EXPECT_TRUE(Before(1).empty());  // it reads other bytes
  EXPECT_EQ(Before(2), (std::vector<Found>{{16, kSummed}}));
  EXPECT_TRUE(Before(3).empty());
  EXPECT_EQ(program_.lacks, "");
}

TEST_F(Arrives, BeforeALeafThatWritesAPart) {
  Load([](BothLevels& trace) {
    const Tensor whole = trace.OnDevice({16}, 0x10000);
    const Tensor part = Reduce(trace, whole, 16);
    const Tensor zero = trace.InBlock(whole, {2}, 16);
    trace.Call("aten::zero_", {Written("self", zero)});
    trace.Call("aten::relu", {In("self", part)}, {Out("out", trace.OnDevice({4}, 0x20000))});
  });
  EXPECT_EQ(Before(1), (std::vector<Found>{{16, kSummed}}));
  EXPECT_TRUE(Before(2).empty());
}

TEST_F(Arrives, NotWhereALeafOverwritesIt) {
  Load([](BothLevels& trace) {
    const Tensor whole = trace.OnDevice({16}, 0x10000);
    const Tensor x = trace.OnDevice({4}, 0x20000);
    const Tensor part = Reduce(trace, whole, 0);
    trace.Call("aten::relu.out(Tensor self, *, Tensor(a!) out) -> Tensor(a!)", {In("self", x)},
               {Out("out", part)});
    trace.Call("aten::relu", {In("self", part)}, {Out("out", x)});
  });
  EXPECT_TRUE(Before(1).empty());
  EXPECT_TRUE(Before(2).empty());
}

TEST_F(Arrives, FromTheLastOfTwoCollectives) {
  Load([](BothLevels& trace) {
    const Tensor whole = trace.OnDevice({16}, 0x10000);
    Reduce(trace, whole, 0);
    const Tensor part = Reduce(trace, whole, 0, kFirst);
    trace.Call("aten::relu", {In("self", part)}, {Out("out", trace.OnDevice({4}, 0x20000))});
  });
  EXPECT_EQ(Before(2), (std::vector<Found>{{0, kFirst}}));
}

// One call of HCCL is for all messages of a batch.
TEST_F(Arrives, WithEachMessageOfABatch) {
  Load([](BothLevels& trace) {
    const Tensor block = trace.OnDevice({64}, 0x10000);
    const Tensor a = trace.OnDevice({4}, 0x10000);
    const Tensor b = trace.OnDevice({4}, 0x10020);
    const Tensor c = trace.OnDevice({4}, 0x10040);
    trace.Call(kReceives, {List("tensors", {a})});
    trace.Call(kSends, {List("tensors", {b})});
    trace.Call(kReceives, {List("tensors", {c})});
    Value items{.name = "sendRecvInfo", .kind = storage::ValueKind::kIntList};
    items.integers = {1, 4, 4, 1, 0, 4, 4, 1, 1, 4, 4, 1};
    Value received =
        List("recvBufs", {trace.InBlock(block, {4}, 0), trace.InBlock(block, {4}, 64)});
    received.direction = storage::Direction::kOut;
    trace.Launch(0, "HcclBatchSendRecv", {items, received}, "hccl");
    trace.Result(1, trace.InBlock(block, {4}, 0), kFirst);
    trace.Result(1, trace.InBlock(block, {4}, 64), kSummed);
    const Tensor y = trace.OnDevice({4}, 0x20000);
    for (const Tensor& tensor : {a, b, c}) {
      trace.Call("aten::relu", {In("self", tensor)}, {Out("out", y)});
    }
  });
  EXPECT_EQ(Before(3), (std::vector<Found>{{0, kFirst}}));
  EXPECT_TRUE(Before(4).empty());  // it was sent
  EXPECT_EQ(Before(5), (std::vector<Found>{{0, kSummed}}));
}

// A collective that fills several tensors receives in one memory and copies from there. With the
// policy `inputs` the copies' own results are not kept.
TEST_F(Arrives, FromTheMemoryThatACollectiveCopiedFrom) {
  Load([](BothLevels& trace) {
    const Tensor block = trace.OnDevice({64}, 0x10000);
    const Tensor a = trace.OnDevice({4}, 0x10000);
    const Tensor b = trace.OnDevice({4}, 0x10010);
    const Tensor c = trace.OnDevice({4}, 0x10020);
    const Tensor received = trace.InBlock(block, {8}, 0x40);
    const int64_t leaf =
        trace
            .Call("c10d::allgather_(Tensor[][] output_tensors, Tensor[] input_tensors) -> ()",
                  {List("output_tensors", {a, b}), List("input_tensors", {c})})
            .last_call();
    trace.Launch(leaf, "HcclAllGather",
                 {In("sendBuf", trace.InBlock(block, {4}, 0x20)), Out("recvBuf", received)},
                 "hccl");
    trace.Result(1, received, {1, 1, 1, 1, 2, 2, 2, 2});
    for (const int64_t part : {0, 0x10}) {
      trace.Launch(leaf, "aclnnInplaceCopy",
                   {Written("selfRef", trace.InBlock(block, {4}, part)),
                    In("src", trace.InBlock(block, {4}, 0x40 + part))});
    }
    const Tensor y = trace.OnDevice({4}, 0x20000);
    for (const Tensor& tensor : {b, a, c}) {
      trace.Call("aten::relu", {In("self", tensor)}, {Out("out", y)});
    }
  });
  EXPECT_EQ(Before(1), (std::vector<Found>{{0, kSummed}}));
  EXPECT_EQ(Before(2), (std::vector<Found>{{0, kFirst}}));
  EXPECT_TRUE(Before(3).empty());
  EXPECT_EQ(program_.lacks, "");
}

// A barrier of a group on the host has no call of HCCL, and neither has a leaf that is older than
// one whose work the adapter's thread has issued.
TEST_F(Arrives, FromTheCallThatTheAdaptersThreadMadeForTheLeaf) {
  Load([](BothLevels& trace) {
    const Tensor block = trace.OnDevice({64}, 0x10000);
    const Tensor x = trace.OnDevice({4}, 0x10000);
    const Tensor y = trace.OnDevice({4}, 0x10020);
    const Tensor in_x = trace.InBlock(block, {4}, 0);
    const Tensor in_y = trace.InBlock(block, {4}, 32);
    trace.Call("c10d::barrier(Tensor tensor) -> ()", {});
    trace.Call(kSums, {List("tensors", {y})});  // it asked for nothing
    const int64_t relu = trace.Call("aten::relu", {In("self", x)}, {Out("out", x)}).last_call();
    trace.Call(kSums, {List("tensors", {x})});
    trace.Launch(relu, "aclnnRelu", {In("self", in_x), Out("out", in_x)});
    trace.Launch(0, "HcclAllReduce", {In("sendBuf", in_x), Out("recvBuf", in_x)}, "hccl");
    trace.Result(1, in_x, kSummed);
    trace.Call("aten::relu", {In("self", x)}, {Out("out", y)});
    trace.Launch(trace.last_call(), "aclnnRelu", {In("self", in_x), Out("out", in_y)});
  });
  EXPECT_EQ(Before(4), (std::vector<Found>{{0, kSummed}}));
}

TEST_F(Arrives, ThereIsASentenceForAReaderOfWhatNobodyKept) {
  Load([](BothLevels& trace) {
    const Tensor x = trace.OnDevice({4}, 0x10000);
    const Tensor y = trace.OnDevice({4}, 0x20000);
    trace.Call(kSums, {List("tensors", {x})});  // its call of HCCL was not recorded
    trace.Call("aten::relu", {In("self", x)}, {Out("out", y)});
    trace.Launch(2, "aclnnRelu", {In("self", x), Out("out", y)});
  });
  EXPECT_NE(program_.lacks.find("call 2 aten::relu reads what call 1 c10d::allreduce_ received, "
                                "which the trace does not hold at PyTorch's level"),
            std::string::npos)
      << program_.lacks;
}

}  // namespace
}  // namespace acltape::analyzer
