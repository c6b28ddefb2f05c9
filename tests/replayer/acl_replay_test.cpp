#include <gtest/gtest.h>

#include "storage/reader.h"
#include "tests/replayer/acl_fixture.h"

namespace acltape::replayer {
namespace {

using storage::DType;
using test::AclRecorded;
using test::AclTraceBuilder;
using test::Floats;
using test::In;
using test::Int;
using test::Out;
using test::Scalar;
using test::Tensor;
using test::Written;

TEST(AclReplay, ASingleOperatorGivesTheRecordedBits) {
  const AclRecorded recorded([](AclTraceBuilder& trace) {
    const int64_t stream = trace.NewStream();
    const Tensor a = trace.Device({3});
    const Tensor b = trace.Device({3});
    const Tensor c = trace.Device({3});
    trace.Upload(a, Floats{1, 2, 3});
    trace.Upload(b, Floats{10, 20, 30}, stream);
    trace
        .Op("aclnnAdd", stream,
            {In("self", a), In("other", b), Scalar("alpha", 0.5), Out("out", c)})
        .After("out", Floats{6, 12, 18});
    trace.Synchronize(stream);
    trace.Download(c, Floats{6, 12, 18});
    for (const Tensor& tensor : {a, b, c}) trace.Free(tensor);
    trace.Interface("aclrtDestroyStream", {Int("stream", stream)}, stream);
  });
  recorded.ExpectEqual(2);
  const ReplayReport report = recorded.Replay();
  EXPECT_EQ(report.acl.calls, 13);
  EXPECT_EQ(report.acl.issued, 7);  // two streams calls, three copies, operator, wait
  EXPECT_EQ(report.acl.memory_calls, 6);
  EXPECT_EQ(report.acl.operators, 1);
}

TEST(AclReplay, CapturedReplayMakesGraphsOfRunsBetweenHostBarriersAndUsesThemAgain) {
  const AclRecorded recorded([](AclTraceBuilder& trace) {
    const int64_t stream = trace.NewStream();
    const Tensor in = trace.Device({2});
    const Tensor state = trace.Device({2});
    const Tensor given = trace.Pinned({2});
    const Tensor taken = trace.Pinned({2});
    trace.Interface("aclrtMemset", {Out("devPtr", trace.Bytes(state)), Int("maxCount", 8),
                                    Int("value", 0), Int("count", 8)});
    Floats sum = {0, 0};
    for (float step = 1; step <= 4; ++step) {
      trace.UploadPinned(in, given, Floats{step, -step}, stream);
      sum = {sum[0] + step, sum[1] - step};
      trace
          .Op("aclnnInplaceAdd", stream,
              {Written("selfRef", state), In("other", in), Scalar("alpha", 1)})
          .After("selfRef", sum);
      trace.DownloadPinned(taken, state, sum, stream);
      trace.Synchronize(stream);
    }
  });
  recorded.ExpectEqual(8);
  for (const Streams streams : {Streams::kRecorded, Streams::kFlat}) {
    const ReplayReport report = recorded.Replay(Mode::kCaptured, streams);
    EXPECT_EQ(report.acl.graphs_made, 1);
    EXPECT_EQ(report.acl.graphs_executed, 4);
    ASSERT_EQ(report.capture.regions.size(), 1u);
    EXPECT_EQ(report.capture.regions[0].leaves, 1);
    EXPECT_EQ(report.capture.regions[0].tasks, 3);
  }
}

TEST(AclReplay, TwoStreamsKeepTheOrderOfTheirEvents) {
  const AclRecorded recorded([](AclTraceBuilder& trace) {
    const int64_t first = trace.NewStream();
    const int64_t second = trace.NewStream();
    const int64_t ready = trace.NewEvent();
    const int64_t used = trace.NewEvent();
    constexpr int64_t kCount = 50000;  // long enough for the streams to overlap
    const Tensor a = trace.Device({kCount});
    const Tensor b = trace.Device({kCount});
    Floats host(kCount, 1);
    trace.Upload(a, host, first);
    for (int round = 0; round < 3; ++round) {
      for (float& value : host) value = value * 2;
      trace.Op("aclnnInplaceMuls", first, {Written("selfRef", a), Scalar("other", 2)})
          .After("selfRef", host);
      trace.Record(ready, first);
      trace.Wait(second, ready);
      Floats twice = host;
      for (float& value : twice) value += value;
      trace
          .Op("aclnnAdd", second,
              {In("self", a), In("other", a), Scalar("alpha", 1), Out("out", b)})
          .After("out", twice);
      trace.Record(used, second);
      trace.Wait(first, used);  // the first stream overwrites what the second reads
    }
    trace.Synchronize(second);
    Floats last = host;
    for (float& value : last) value += value;
    trace.Download(b, last);
  });
  recorded.ExpectEqual(7);
}

TEST(AclReplay, AReusedAddressIsAnotherBuffer) {
  const AclRecorded recorded([](AclTraceBuilder& trace) {
    const int64_t stream = trace.NewStream();
    const Tensor out = trace.Device({2});
    for (int round = 0; round < 3; ++round) {
      const auto value = static_cast<float>(round + 1);
      const Tensor block = trace.Device({2}, DType::kFloat32, 0xabc000);
      trace.Upload(block, Floats{value, -value}, stream);
      trace.Op("aclnnRelu", stream, {In("self", block), Out("out", out)})
          .After("out", Floats{value, 0});
      trace.Free(block);  // queued work still reads it: no wait in between
    }
    trace.Synchronize(stream);
  });
  recorded.ExpectEqual(3);
}

TEST(AclReplay, BuffersShareMemoryOnlyAfterTheHostHasWaited) {
  constexpr int64_t kBytes = 1 << 20;
  for (const bool wait : {true, false}) {
    const AclRecorded recorded([&](AclTraceBuilder& trace) {
      const int64_t stream = trace.NewStream();
      for (int round = 0; round < 8; ++round) {
        const Tensor block = trace.Device({kBytes / 4});
        trace.Interface("aclrtMemsetAsync",
                        {Out("devPtr", trace.Bytes(block)), Int("maxCount", kBytes),
                         Int("value", round), Int("count", kBytes), Int("stream", stream)},
                        stream);
        if (wait) trace.Synchronize(stream);
        trace.Free(block);
      }
    });
    const int64_t bytes = recorded.Replay().device_bytes;
    if (wait) {
      EXPECT_LT(bytes, 2 * kBytes);
    } else {
      EXPECT_GT(bytes, 8 * kBytes);
    }
  }
}

TEST(AclReplay, ViewsAtOffsetsOfOneBlockAndCopiesOnTheDevice) {
  const AclRecorded recorded([](AclTraceBuilder& trace) {
    const int64_t stream = trace.NewStream();
    const Tensor block = trace.Device({8});
    const Tensor head = AclTraceBuilder::View(block, {4}, {1});
    const Tensor odd = AclTraceBuilder::View(block, {2}, {2}, 1);
    const Tensor tail = AclTraceBuilder::View(block, {4}, {1}, 4);
    trace.Upload(head, Floats{1, 2, 3, 4}, stream);
    trace.Op("aclnnInplaceMuls", stream, {Written("selfRef", odd), Scalar("other", 10)})
        .After("selfRef", Floats{20, 40});
    trace.Copy(Out("dst", trace.Bytes(tail)), In("src", trace.Bytes(head)), 16, 3, stream);
    trace.Download(block, Floats{1, 20, 3, 40, 1, 20, 3, 40}, stream);
    trace.Synchronize(stream);
  });
  recorded.ExpectEqual(2);
}

TEST(AclReplay, BytesThatNothingWroteAreLeftOutOfTheComparison) {
  const AclRecorded recorded([](AclTraceBuilder& trace) {
    const Tensor block = trace.Device({4});
    const Tensor half = AclTraceBuilder::View(block, {2}, {1});
    trace.Upload(half, Floats{1, 2});
    trace.Download(block, Floats{1, 2, 1e9f, -1e9f});  // the last two were there before the program
  });
  recorded.ExpectEqual(1);
}

TEST(AclReplay, ABufferThatNoCallWroteComesFromTheRecording) {
  const AclRecorded recorded([](AclTraceBuilder& trace) {
    const int64_t stream = trace.NewStream();
    const Tensor a = trace.Device({2});
    const Tensor b = trace.Device({2});
    trace.Op("aclnnRelu", stream, {In("self", a), Out("out", b)})
        .After("out", Floats{5, 0})
        .Before(a, Floats{5, -6});
    trace.Synchronize(stream);
  });
  recorded.ExpectEqual(1);
}

TEST(AclReplay, RowsOfCopiesInTwoDimensions) {
  const AclRecorded recorded([](AclTraceBuilder& trace) {
    const Tensor to = trace.Device({2, 4});
    Floats source = {1, 2, 3, 4, 5, 6, 7, 8};  // rows of four, two columns each are copied
    trace.Interface("aclrtMemset", {Out("devPtr", trace.Bytes(to)), Int("maxCount", 32),
                                    Int("value", 0), Int("count", 32)});
    trace.Interface("aclrtMemcpy2d",
                    {Out("dst", trace.Bytes(to)), Int("dpitch", 16), Int("src", 0x900000),
                     Int("spitch", 16), Int("width", 8), Int("height", 2), Int("kind", 1)});
    trace.KeptBefore(2, Floats{1, 2, 3, 4, 5, 6});
    trace.Download(to, Floats{1, 2, 0, 0, 5, 6, 0, 0});
    trace.Interface("aclrtMemcpy2d",
                    {Int("dst", 0x900000), Int("dpitch", 8), In("src", trace.Bytes(to)),
                     Int("spitch", 16), Int("width", 8), Int("height", 2), Int("kind", 2)});
    trace.KeptAfter(0, Floats{1, 2, 5, 6});
  });
  recorded.ExpectEqual(2);
}

TEST(AclReplay, AQueryThatFoundWorkEndedIsAWait) {
  const AclRecorded recorded([](AclTraceBuilder& trace) {
    const int64_t stream = trace.NewStream();
    const int64_t event = trace.NewEvent();
    const Tensor a = trace.Device({100000});
    trace.Interface("aclrtMemsetAsync",
                    {Out("devPtr", trace.Bytes(a)), Int("maxCount", 400000), Int("value", 0),
                     Int("count", 400000), Int("stream", stream)},
                    stream);
    for (int round = 0; round < 50; ++round) {
      trace.Op("aclnnInplaceAdds", stream,
               {Written("selfRef", a), Scalar("other", 1), Scalar("alpha", 1)});
    }
    trace.Record(event, stream);
    trace.Interface("aclrtQueryEventStatus", {Int("event", event), Int("status", 0)});
    trace.Interface("aclrtQueryEventStatus", {Int("event", event), Int("status", 1)});
    trace.Download(a, Floats(100000, 50));  // at once: it waits for no stream
  });
  recorded.ExpectEqual(1);
}

TEST(AclReplay, WorkOfSeveralThreadsWaitsWhereItWaited) {
  // Thread 1 waits for the stream while thread 2 submits: the copy after the wait sees its work.
  const AclRecorded recorded([](AclTraceBuilder& trace) {
    const int64_t stream = trace.NewStream();
    const Tensor a = trace.Device({2});
    trace.Upload(a, Floats{1, 2});
    trace.BeginLongWait();
    trace.Synchronize(stream);
    trace.Thread(2);
    trace.Op("aclnnInplaceMuls", stream, {Written("selfRef", a), Scalar("other", 3)})
        .After("selfRef", Floats{3, 6});
    trace.Thread(1);
    trace.EndLongWait();
    trace.Download(a, Floats{3, 6});
  });
  recorded.ExpectEqual(2);
}

// Four numbers of a buffer, from a byte on.
Tensor FourOf(Tensor tensor, int64_t first_byte) {
  tensor.layout.byte_offset = first_byte;
  tensor.layout.shape = {4};
  tensor.layout.strides = {1};
  return tensor;
}

TEST(AclReplay, AReservationOf64GibTakesThePagesThatCallsTouch) {
  constexpr int64_t kFar = int64_t{40} << 30;
  const AclRecorded recorded([](AclTraceBuilder& trace) {
    const int64_t stream = trace.NewStream();
    const Tensor reserved = trace.Device({int64_t{16} << 30});
    const Tensor near = FourOf(reserved, 0);
    const Tensor far = FourOf(reserved, kFar + 12);
    trace.Upload(near, Floats{1, 2, 3, 4});
    trace.Op("aclnnMuls", stream, {In("self", near), Scalar("other", 2), Out("out", far)})
        .After("out", Floats{2, 4, 6, 8});
    trace.Synchronize(stream);
    trace.Download(far, Floats{2, 4, 6, 8});
  });
  recorded.ExpectEqual(2);
  EXPECT_LT(recorded.Replay().device_bytes, 8 << 20);
}

TEST(AclReplay, AWaitForAValueThatNothingWritesIsPassedAndNamed) {
  const AclRecorded recorded([](AclTraceBuilder& trace) {
    const int64_t stream = trace.NewStream();
    const Tensor cell = trace.Device({8}, DType::kUint8);
    const Tensor a = trace.Device({2});
    trace.Upload(a, Floats{1, 2});
    trace.Interface("aclrtValueWait",
                    {In("devAddr", cell), Int("value", 5), Int("flag", 1), Int("stream", stream)},
                    stream);
    trace.Op("aclnnInplaceMuls", stream, {Written("selfRef", a), Scalar("other", 3)})
        .After("selfRef", Floats{3, 6});
    trace.Synchronize(stream);
  });
  recorded.ExpectEqual(1);
  const ReplayReport report = recorded.Replay();
  EXPECT_EQ(report.acl.unreleased_waits, 1);
  ASSERT_EQ(report.notes.size(), 1u);
  EXPECT_EQ(report.notes[0].rule, "ACL-VALUE-WAIT");
}

TEST(AclReplay, WhatReleasesAStreamIsNotMadeToWaitForIt) {
  // In a graph of both streams the write would stand after the wait that it releases.
  const AclRecorded recorded([](AclTraceBuilder& trace) {
    const int64_t waiting = trace.NewStream();
    const int64_t releasing = trace.NewStream();
    const Tensor cell = trace.Device({8}, DType::kUint8);
    const Tensor a = trace.Device({2});
    const Tensor b = trace.Device({2});
    trace.Upload(a, Floats{1, 2});
    trace.Upload(b, Floats{1, 1});
    trace.Interface("aclrtValueWait",
                    {In("devAddr", cell), Int("value", 5), Int("flag", 1), Int("stream", waiting)},
                    waiting);
    trace.Op("aclnnInplaceMuls", waiting, {Written("selfRef", a), Scalar("other", 3)})
        .After("selfRef", Floats{3, 6});
    trace.Op("aclnnInplaceMuls", releasing, {Written("selfRef", b), Scalar("other", 2)})
        .After("selfRef", Floats{2, 2});
    trace.Interface(
        "aclrtValueWrite",
        {Out("devAddr", cell), Int("value", 5), Int("flag", 0), Int("stream", releasing)},
        releasing);
    trace.Synchronize(waiting);
  });
  recorded.ExpectEqual(2);
}

}  // namespace
}  // namespace acltape::replayer
