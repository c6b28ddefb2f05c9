// Graphs that the recorded program itself captured.
#include <gtest/gtest.h>

#include "tests/replayer/acl_fixture.h"

namespace acltape::replayer {
namespace {

using test::AclRecorded;
using test::AclTraceBuilder;
using test::Explain;
using test::Floats;
using test::In;
using test::Int;
using test::Out;
using test::Scalar;
using test::Tensor;
using test::Written;

// out = relu(x) + x * x, the two terms on streams of their own.
struct ForkJoin {
  int64_t origin, other, fork, join;
  Tensor x, positive, square, out;

  explicit ForkJoin(AclTraceBuilder& trace)
      : origin(trace.NewStream()),
        other(trace.NewStream()),
        fork(trace.NewEvent()),
        join(trace.NewEvent()),
        x(trace.Device({3})),
        positive(trace.Device({3})),
        square(trace.Device({3})),
        out(trace.Device({3})) {}

  void Submit(AclTraceBuilder& trace) const {
    trace.Record(fork, origin);
    trace.Wait(other, fork);
    trace.Op("aclnnRelu", origin, {In("self", x), Out("out", positive)});
    trace.Op("aclnnMul", other, {In("self", x), In("other", x), Out("out", square)});
    trace.Record(join, other);
    trace.Wait(origin, join);
    trace.Op("aclnnAdd", origin,
             {In("self", positive), In("other", square), Scalar("alpha", 1), Out("out", out)});
  }
  static Floats Result(const Floats& x) {
    Floats result;
    for (const float value : x) result.push_back((value > 0 ? value : 0) + value * value);
    return result;
  }
};

TEST(AclGraphReplay, AForkAndJoinIsExecutedThreeTimesWithOtherInputs) {
  const AclRecorded recorded([](AclTraceBuilder& trace) {
    const ForkJoin graph(trace);
    trace.BeginCapture(graph.origin);
    graph.Submit(trace);
    const int64_t model = trace.EndCapture(graph.origin);
    for (const float scale : {1.0f, -2.0f, 3.0f}) {
      const Floats x = {scale, -scale, 2 * scale};
      trace.Upload(graph.x, x, graph.origin);
      trace.Execute(model, graph.origin).AfterWhole(graph.out, ForkJoin::Result(x));
      trace.Download(graph.out, ForkJoin::Result(x), graph.origin);
      trace.Synchronize(graph.origin);
    }
    graph.Submit(trace);  // the same streams, eagerly
    trace.Download(graph.out, ForkJoin::Result({3, -3, 6}), graph.origin);
    trace.Synchronize(graph.origin);
    trace.Interface("aclmdlRIDestroy", {Int("modelRI", model)});
  });
  recorded.ExpectEqual(7);
  const ReplayReport report = recorded.Replay();
  EXPECT_EQ(report.acl.models, 1);
  EXPECT_EQ(report.acl.executions, 3);
}

TEST(AclGraphReplay, CapturedCopiesReadPinnedMemoryAtEachExecution) {
  const AclRecorded recorded([](AclTraceBuilder& trace) {
    const int64_t stream = trace.NewStream();
    const Tensor pinned = trace.Pinned({2});
    const Tensor x = trace.Device({2});
    trace.BeginCapture(stream);
    trace.UploadPinned(x, pinned, Floats{0, 0}, stream);
    trace.Op("aclnnInplaceAdds", stream,
             {Written("selfRef", x), Scalar("other", 1), Scalar("alpha", 1)});
    const int64_t model = trace.EndCapture(stream);
    for (const float value : {1.0f, 1.0f, 7.0f}) {
      trace.Execute(model, stream)
          .AfterWhole(x, Floats{value + 1, value + 2})
          .Before(pinned, Floats{value, value + 1});
    }
    trace.Synchronize(stream);
  });
  recorded.ExpectEqual(3);
}

TEST(AclGraphReplay, RangesInsideBuffersAreFedWhereTheyLie) {
  const AclRecorded recorded([](AclTraceBuilder& trace) {
    const int64_t stream = trace.NewStream();
    const Tensor pinned = trace.Pinned({4});
    const Tensor source = AclTraceBuilder::View(pinned, {2}, {1}, 2);
    const Tensor block = trace.Device({4});
    const Tensor weight = AclTraceBuilder::View(block, {2}, {1}, 2);
    const Tensor x = trace.Device({2});
    trace.BeginCapture(stream);
    trace.UploadPinned(x, source, Floats{0, 0}, stream);
    trace.Op("aclnnInplaceMul", stream, {Written("selfRef", x), In("other", weight)});
    const int64_t model = trace.EndCapture(stream);
    for (const float value : {3.0f, 5.0f}) {
      trace.Execute(model, stream).AfterWhole(x, Floats{10 * value, -20 * value});
      trace.BeforeRange(source, Floats{value, -value});
      if (value == 3.0f) trace.BeforeRange(weight, Floats{10, 20});
    }
    trace.Synchronize(stream);
  });
  recorded.ExpectEqual(2);
}

TEST(AclGraphReplay, OfABufferOnlyWhatTheGraphWroteIsComparedAfterAnExecution) {
  const AclRecorded recorded([](AclTraceBuilder& trace) {
    const int64_t stream = trace.NewStream();
    const Tensor block = trace.Device({4});
    const Tensor head = AclTraceBuilder::View(block, {2}, {1});
    const Tensor tail = AclTraceBuilder::View(block, {2}, {1}, 2);
    trace.Upload(block, Floats{1, 2, 3, 4});
    trace.BeginCapture(stream);
    trace.Op("aclnnInplaceMuls", stream, {Written("selfRef", head), Scalar("other", 2)});
    const int64_t model = trace.EndCapture(stream);
    // The tail as another stream might have left it.
    trace.Execute(model, stream).AfterWhole(block, Floats{2, 4, 99, 99});
    trace.Synchronize(stream);
    trace.Download(tail, Floats{3, 4});
  });
  recorded.ExpectEqual(2);
}
// An operator's workspace lies where a tensor lay that an operator before it reads: on one stream
// that is right, and a framework's allocator does it.
TEST(AclGraphReplay, AWorkspaceMayLieInMemoryThatAnEarlierOperatorReads) {
  const AclRecorded recorded([](AclTraceBuilder& trace) {
    const int64_t stream = trace.NewStream();
    const Tensor x = trace.Device({1024});
    const Tensor y = trace.Device({1024});
    const Tensor a = trace.Device({16, 16}, storage::DType::kFloat16);
    const Tensor product = trace.Device({16, 16}, storage::DType::kFloat16);
    trace.Upload(x, Floats(1024, 3), stream);
    trace.Upload(a, std::vector<uint16_t>(256, 0x3c00), stream);  // ones
    trace.Op("aclnnRelu", stream, {In("self", x), Out("out", y)}).After("out", Floats(1024, 3));
    trace
        .OpWithWorkspace(
            "aclnnMatmul", stream,
            {In("self", a), In("mat2", a), Out("out", product), Int("cubeMathType", 0)}, x)
        .After("out", std::vector<uint16_t>(256, 0x4c00));  // sixteens
    trace.Synchronize(stream);
  });
  recorded.ExpectEqual(2);
}

TEST(AclGraphReplay, ACaptureThatFailedLeavesNoWork) {
  const AclRecorded recorded([](AclTraceBuilder& trace) {
    const int64_t stream = trace.NewStream();
    const Tensor x = trace.Device({1});
    trace.Upload(x, Floats{1});
    trace.BeginCapture(stream);
    trace.Op("aclnnInplaceMuls", stream, {Written("selfRef", x), Scalar("other", 2)});
    trace.EndCapture(stream, 107025);
    trace.Op("aclnnInplaceMuls", stream, {Written("selfRef", x), Scalar("other", 5)})
        .After("selfRef", Floats{5});
    trace.Synchronize(stream);
  });
  recorded.ExpectEqual(1);
  const ReplayReport report = recorded.Replay();
  EXPECT_EQ(report.acl.failed, 1);
  EXPECT_EQ(report.acl.abandoned, 2);
}

TEST(AclGraphReplay, WithoutRecordedResultsACapturedReplayIsComparedWithAnEagerOne) {
  const AclRecorded recorded([](AclTraceBuilder& trace) {
    const ForkJoin graph(trace);
    trace.BeginCapture(graph.origin);
    graph.Submit(trace);
    const int64_t model = trace.EndCapture(graph.origin);
    for (const float scale : {1.0f, -2.0f}) {
      trace.Upload(graph.x, Floats{scale, -scale, 2 * scale}, graph.origin);
      trace.Execute(model, graph.origin);
    }
    graph.Submit(trace);
    trace.Synchronize(graph.origin);
  });
  for (const Streams streams : {Streams::kRecorded, Streams::kFlat}) {
    EXPECT_EQ(recorded.Replay(Mode::kEager, streams).compared, 0);
    const ReplayReport report = recorded.Replay(Mode::kCaptured, streams);
    EXPECT_EQ(report.differing, 0) << Explain(report);
    EXPECT_EQ(report.compared, 9);  // three outputs of the graph twice, three of the operators
    EXPECT_EQ(report.not_comparable, 0);
  }
}

// The graph waits for an external event and resets it right before its task group; the program
// starts the graph first, then rewrites the group on another stream and records the event there.
// An older event was created before the recording began.
AclRecorded UpdatedGroup(bool older = false) {
  return AclRecorded([older](AclTraceBuilder& trace) {
    const int64_t stream = trace.NewStream();
    const int64_t updater = trace.NewStream();
    const int64_t updated = older ? trace.OlderEvent(0x20) : trace.NewEvent(0x20);
    const Tensor x = trace.Device({2});
    const Tensor y = trace.Device({2});
    const Tensor out = trace.Device({2});
    trace.Upload(x, Floats{1, 2});
    trace.BeginCapture(stream);
    trace.Wait(stream, updated);
    trace.Reset(updated, stream);
    trace.Interface("aclmdlRICaptureTaskGrpBegin", {Int("stream", stream)}, stream);
    trace.Op("aclnnMuls", stream, {In("self", x), Scalar("other", 1), Out("out", y)});
    trace.Interface("aclmdlRICaptureTaskGrpEnd", {Int("stream", stream), Int("handle", 0x77)},
                    stream);
    trace.Op("aclnnMul", stream, {In("self", y), In("other", y), Out("out", out)});
    const int64_t model = trace.EndCapture(stream);
    for (const float factor : {2.0f, 3.0f, 4.0f}) {
      trace.Execute(model, stream).AfterWhole(out, Floats{factor * factor, 4 * factor * factor});
      trace.Interface("aclmdlRICaptureTaskUpdateBegin",
                      {Int("stream", updater), Int("handle", 0x77)}, updater);
      trace.Op("aclnnMuls", updater, {In("self", x), Scalar("other", factor), Out("out", y)});
      trace.Interface("aclmdlRICaptureTaskUpdateEnd", {Int("stream", updater)}, updater);
      trace.Record(updated, updater);
      trace.Synchronize(stream);
      trace.Download(out, Floats{factor * factor, 4 * factor * factor});
    }
    trace.Synchronize(updater);
  });
}

TEST(AclGraphReplay, AnUpdateAfterTheLaunchReachesTheGraphOnOneStreamToo) {
  const AclRecorded recorded = UpdatedGroup();
  for (const Mode mode : {Mode::kEager, Mode::kCaptured}) {
    const ReplayReport report = recorded.Replay(mode, Streams::kFlat);
    EXPECT_EQ(report.differing, 0) << Explain(report);
    EXPECT_EQ(report.compared, 6);
  }
}

TEST(AclGraphReplay, TaskGroupsAreUpdatedOnTheRecordedStreams) {
  const AclRecorded recorded = UpdatedGroup();
  for (const Mode mode : {Mode::kEager, Mode::kCaptured}) {
    const ReplayReport report = recorded.Replay(mode, Streams::kRecorded);
    EXPECT_EQ(report.differing, 0) << Explain(report);
    EXPECT_EQ(report.compared, 6);
  }
}

TEST(AclGraphReplay, AnEventThatIsOlderThanTheRecordingCanBeResetIfItIsExternal) {
  UpdatedGroup(/*older=*/true).ExpectEqual(6);
}

// Two steps of a program whose second stream waits for an event and resets it, of which the window
// shows the steps from there on: the first record came before. The flags do not tell the kind of
// the event; its reset does.
TEST(AclGraphReplay, AnOlderEventIsSetIfTheHostWaitedForWorkAfterItsWait) {
  for (const int64_t flags : {0x20, 0x1}) {
    const AclRecorded recorded([flags](AclTraceBuilder& trace) {
      const int64_t stream = trace.NewStream();
      const int64_t side = trace.NewStream();
      const int64_t done = trace.OlderEvent(flags);
      const Tensor x = trace.Device({2});
      const Tensor out = trace.Device({2});
      for (const float value : {1.0f, 2.0f}) {
        trace.Wait(side, done);
        trace.Reset(done, side);
        trace.Synchronize(side);
        trace.Upload(x, Floats{value, value}, stream);
        trace.Op("aclnnMul", stream, {In("self", x), In("other", x), Out("out", out)});
        trace.After("out", Floats{value * value, value * value});
        trace.Record(done, stream);
        trace.Synchronize(stream);
      }
    });
    recorded.ExpectEqual(2);
  }
}

// As the first wait of the other program, but for a notify.
TEST(AclGraphReplay, AnOlderNotifyIsCreatedAndSet) {
  const AclRecorded recorded([](AclTraceBuilder& trace) {
    const int64_t stream = trace.NewStream();
    const Tensor x = trace.Device({2});
    const Tensor out = trace.Device({2});
    trace.Upload(x, Floats{1, 2});
    trace.Interface("aclrtWaitAndResetNotify",
                    {Int("notify", 0x99), Int("stream", stream), Int("timeout", 0)}, stream);
    trace.Op("aclnnMul", stream, {In("self", x), In("other", x), Out("out", out)});
    trace.After("out", Floats{1, 4});
    trace.Synchronize(stream);
  });
  recorded.ExpectEqual(1);
}

}  // namespace
}  // namespace acltape::replayer
