#include "analyzer/program/acl_leaves.h"

#include <gtest/gtest.h>

#include "analyzer/acl/acl_order.h"
#include "analyzer/lowering/acl_leaf.h"
#include "analyzer/lowering/lowering.h"
#include "analyzer/steps/step_times.h"
#include "analyzer/steps/steps.h"
#include "storage/database.h"
#include "storage/error.h"
#include "tests/analyzer/acl_trace_builder.h"

namespace acltape::analyzer {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace): the words of the trace builder
using Floats = std::vector<float>;

// "aclnnRelu kernel" for each leaf.
std::vector<std::string> TextOf(const Program& program) {
  std::vector<std::string> text;
  for (const Leaf& leaf : program.leaves) {
    text.push_back(leaf.Name() + " " + std::string(LeafKindName(leaf.kind)));
  }
  return text;
}

std::string ErrorOf(const storage::Reader& reader) {
  try {
    LoadProgram(reader);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Work, WorkThatWaitedCountsWhereItRan) {
  Work work;
  work.dialect = Dialect::kAclLeaves;
  work.issued_by = {10, 12, 30, 30, 31, 40};  // the fourth is of call 14 and ran after that of 30
  work.calls.resize(work.issued_by.size());
  using Places = std::pair<int64_t, int64_t>;
  EXPECT_EQ(work.Between(1, 9), (Places{0, 0}));
  EXPECT_EQ(work.Between(10, 20), (Places{0, 2}));
  EXPECT_EQ(work.Between(21, 35), (Places{2, 5}));
  EXPECT_EQ(work.Between(36, 40), (Places{5, 6}));
  EXPECT_EQ(work.Between(41, 99), (Places{6, 6}));
}

TEST(AclLeaves, WorkOfTheDeviceIsSortedByWhatTheHostHasToDoWithIt) {
  TemporaryTrace file("acl-leaves-kinds");
  AclTraceBuilder trace(file.path());
  const int64_t stream = trace.NewStream();
  const Tensor a = trace.Device({4});
  const Tensor b = trace.Device({4});
  trace.Upload(a, Floats{1, 2, 3, 4}, stream);
  trace.Op("aclnnRelu", stream, {In("self", a), Out("out", b)});
  trace.Copy(Out("dst", trace.Bytes(a)), In("src", trace.Bytes(b)), 16, 3, stream);
  trace.Download(b, Floats{1, 2, 3, 4}, stream);
  trace.Synchronize(stream);
  trace.Finish();
  const storage::Reader reader(file.path());
  const Program program = LoadProgram(reader);
  EXPECT_EQ(TextOf(program),
            (std::vector<std::string>{"aclrtMemcpyAsync source", "aclnnRelu kernel",
                                      "aclrtMemcpyAsync kernel", "aclrtMemcpyAsync host read"}));
  ASSERT_EQ(program.leaves[0].after.size(), 1u);  // the bytes of the host are its result
  const auto bytes = program.Payload(program.leaves[0].after[0].digest);
  ASSERT_NE(bytes, nullptr);
  EXPECT_EQ(reinterpret_cast<const float*>(bytes->data())[3], 4);
  EXPECT_TRUE(program.uses[0].reads.empty());
  EXPECT_TRUE(program.uses[3].writes.empty());
  EXPECT_EQ(program.lacks, "");

  std::string why;
  const std::optional<lowering::Lowering> copy = lowering::Lower(program, program.leaves[2], &why);
  ASSERT_TRUE(copy.has_value()) << why;
  EXPECT_EQ(copy->invocations[0].op, "aclnnInplaceCopy");
}

TEST(AclLeaves, EachExecutionOfAGraphIsTakenApartUnderIdsOfItsOwn) {
  TemporaryTrace file("acl-leaves-graph");
  AclTraceBuilder trace(file.path());
  const int64_t stream = trace.NewStream();
  const Tensor a = trace.Device({4});
  const Tensor b = trace.Device({4});
  trace.Upload(a, Floats{1, -2, 3, -4}, stream);
  trace.BeginCapture(stream);
  trace.Op("aclnnRelu", stream, {In("self", a), Out("out", b)});
  const int64_t held = trace.last_call();
  const int64_t model = trace.EndCapture(stream);
  trace.Execute(model, stream);
  trace.AfterWhole(b, Floats{1, 0, 3, 0});
  const int64_t first = trace.last_call();
  trace.Execute(model, stream);
  const int64_t second = trace.last_call();
  trace.Synchronize(stream);
  trace.Finish();
  const storage::Reader reader(file.path());
  const Program program = LoadProgram(reader);
  ASSERT_EQ(program.leaves.size(), 3u);
  EXPECT_EQ(program.leaves[1].call.call_id, held);
  EXPECT_EQ(program.leaves[2].call.call_id, held + kExecutionIds);
  EXPECT_EQ(RecordedCall(program.leaves[2].call.call_id), held);
  EXPECT_EQ(IssuedBy(program.leaves[1]), first);
  EXPECT_EQ(IssuedBy(program.leaves[2]), second);
  // The contents of the buffers after an execution are the result of the leaf that wrote them last.
  const storage::Snapshot* result = RecordedResult(program.leaves[1], program.uses[1].writes[0]);
  ASSERT_NE(result, nullptr);
  EXPECT_EQ(reinterpret_cast<const float*>(program.Payload(result->digest)->data())[2], 3);
  EXPECT_EQ(RecordedResult(program.leaves[2], program.uses[2].writes[0]), nullptr);

  const Work& work = program.work;
  ASSERT_EQ(work.size(), program.leaves.size());
  EXPECT_EQ(work.Find(held + kExecutionIds), 2);
  EXPECT_EQ(work.Find(held + 2 * kExecutionIds), -1);
}

TEST(AclLeaves, WorkInAGraphHasTheTimesOfItsExecutionAndNotOfItsCapture) {
  TemporaryTrace file("acl-leaves-times");
  AclTraceBuilder trace(file.path());
  const int64_t stream = trace.NewStream();
  const Tensor a = trace.Device({4});
  const Tensor b = trace.Device({4});
  trace.BeginCapture(stream);
  trace.Op("aclnnRelu", stream, {In("self", a), Out("out", b)});
  trace.Op("aclnnAbs", stream, {In("self", b), Out("out", b)});
  const int64_t model = trace.EndCapture(stream);
  for (int step = 0; step < 3; ++step) {
    const int64_t first = trace.last_call() + 1;
    trace.Upload(a, Floats{1, -2, 3, -4}, stream);
    trace.Execute(model, stream);
    trace.Download(b, Floats{1, 2, 3, 4}, stream);
    trace.writer().AddStep({step, first, trace.last_call(), "range:step"});
  }
  trace.Finish();
  const storage::Reader reader(file.path());
  const Program program = LoadProgram(reader);
  const Work& work = program.work;
  ASSERT_EQ(work.steps.size(), 3u);
  const std::vector<int64_t> times = StepTimes(work);
  for (size_t s = 0; s < work.steps.size(); ++s) {
    const StepRange& step = work.steps[s];
    ASSERT_EQ(step.end - step.first, 4);  // upload, relu, abs, download
    EXPECT_EQ(times[s], 1000 * (step.last_call - step.first_call) + 600);
    const GraphExecution* execution = work.ExecutionOf(step.first + 1);
    ASSERT_NE(execution, nullptr);
    EXPECT_EQ(work.ExecutionOf(step.first + 2), execution);
    EXPECT_EQ(work.ExecutionOf(step.first), nullptr);
    EXPECT_EQ(work.ExecutionOf(step.first + 3), nullptr);
    EXPECT_EQ(work.calls[step.first + 1].begin_ns, execution->begin_ns);
    EXPECT_EQ(work.calls[step.first + 1].duration_ns, 600);
    EXPECT_EQ(work.calls[step.first + 2].duration_ns, 0);  // all of it is the first one's
    int64_t before = 0;
    for (int64_t call = step.first; call < step.end; ++call) {
      EXPECT_GE(work.calls[call].begin_ns, before);
      before = work.calls[call].begin_ns;
    }
  }
}

TEST(StepTimes, CallsOfAWorkerAreNoTimeOfAStep) {
  TemporaryTrace file("step-times-worker");
  AclTraceBuilder trace(file.path());
  const int64_t stream = trace.NewStream();
  const Tensor a = trace.Device({4});
  for (int step = 0; step < 3; ++step) {
    const int64_t first = trace.last_call() + 1;
    trace.Thread(8);  // a worker is at work while the step begins, and when it has ended
    trace.Interface("aclrtGetDevice", {});
    trace.Thread(1);
    trace.Op("aclnnRelu", stream, {In("self", a), Out("out", a)});
    trace.Synchronize(stream);
    trace.Thread(8);
    trace.Interface("aclrtGetDevice", {});
    trace.writer().AddStep({step, first, trace.last_call(), "range:step"});
  }
  trace.Finish();
  {
    storage::Reader writable(file.path(), storage::Reader::Mode::kReadWrite);
    writable.database().Execute(
        "INSERT OR REPLACE INTO process(process_id, pid, name) VALUES (2, 11, 'pt_data_worker'); "
        "UPDATE thread SET process_id = 2 WHERE thread_id = 8");
  }
  const storage::Reader reader(file.path());
  const Work work = LoadWork(reader);
  EXPECT_EQ(StepTimes(work), (std::vector<int64_t>{1600, 1600, 1600}));
}

TEST(AclLeaves, WorkAfterAnEventComesAfterTheWorkBeforeItsRecord) {
  TemporaryTrace file("acl-leaves-event");
  AclTraceBuilder trace(file.path());
  const int64_t main = trace.NewStream();
  const int64_t side = trace.NewStream();
  const int64_t event = trace.NewEvent(0x20);  // external: a wait may come before the record
  const Tensor a = trace.Device({4});
  const Tensor b = trace.Device({4});
  trace.Upload(a, Floats{1, 2, 3, 4});
  trace.Wait(main, event);
  trace.Op("aclnnRelu", main, {In("self", a), Out("out", b)});
  trace.Op("aclnnAbs", side, {In("self", b), Out("out", a)});
  trace.Record(event, side);
  trace.Synchronize(main);
  trace.Finish();
  const storage::Reader reader(file.path());
  EXPECT_EQ(
      TextOf(LoadProgram(reader)),
      (std::vector<std::string>{"aclrtMemcpy source", "aclnnAbs kernel", "aclnnRelu kernel"}));
}

TEST(AclLeaves, AWaitThatNothingReleasesIsRefusedByName) {
  TemporaryTrace file("acl-leaves-stuck");
  AclTraceBuilder trace(file.path());
  const int64_t stream = trace.NewStream();
  const int64_t event = trace.NewEvent(0x20);
  const Tensor a = trace.Device({4});
  trace.Wait(stream, event);
  trace.Op("aclnnInplaceRelu", stream, {In("self", a), Out("out", a)});
  trace.Synchronize(stream);
  const int64_t call = trace.last_call();
  trace.Finish();
  const storage::Reader reader(file.path());
  const std::string error = ErrorOf(reader);
  EXPECT_NE(error.find("call " + std::to_string(call) + " aclrtSynchronizeStream waits for work"),
            std::string::npos)
      << error;
}

TEST(AclOrder, WorkAfterAWaitOfTheHostIsMarked) {
  TemporaryTrace file("acl-order-waited");
  AclTraceBuilder trace(file.path());
  const int64_t stream = trace.NewStream();
  const Tensor a = trace.Device({4});
  trace.Op("aclnnInplaceRelu", stream, {In("self", a), Out("out", a)});
  trace.Op("aclnnInplaceRelu", stream, {In("self", a), Out("out", a)});
  trace.Synchronize(stream);
  trace.Op("aclnnInplaceRelu", stream, {In("self", a), Out("out", a)});
  trace.Finish();
  const storage::Reader reader(file.path());
  std::vector<bool> waited;
  for (const AclTurn& turn : OrderOfWork(LoadAclProgram(reader))) waited.push_back(turn.waited);
  EXPECT_EQ(waited, (std::vector<bool>{false, false, true}));
}

TEST(AclLeaves, AFillLeavesItsPatternOverAllOfItsRange) {
  TemporaryTrace file("acl-leaves-fill");
  AclTraceBuilder trace(file.path());
  const int64_t stream = trace.NewStream();
  const Tensor a = trace.Device({3});
  trace.Interface("aclrtMemsetAsync",
                  {Out("devPtr", trace.Bytes(a)), Int("maxCount", 12), Int("value", 0x17f),
                   Int("count", 12), Int("stream", stream)},
                  stream);
  trace.Finish();
  const storage::Reader reader(file.path());
  const Program program = LoadProgram(reader);
  ASSERT_EQ(program.leaves.size(), 1u);
  const auto bytes = lowering::FilledBytes(program.leaves[0], *program.uses[0].writes[0].layout);
  EXPECT_EQ(*bytes, std::vector<uint8_t>(12, 0x7f));
}

TEST(AclLeaves, AnInputOfAPartOfABufferBeginsWhereThePartDoes) {
  TemporaryTrace file("acl-leaves-part");
  AclTraceBuilder trace(file.path());
  const int64_t stream = trace.NewStream();
  const Tensor block = trace.Device({8});
  const Tensor half = AclTraceBuilder::View(block, {4}, {1}, 4);
  trace.Op("aclnnRelu", stream, {In("self", half), Out("out", half)});
  trace.BeforeRange(half, Floats{1, 2, 3, 4});
  trace.Finish();
  const storage::Reader reader(file.path());
  const Program program = LoadProgram(reader);
  ASSERT_EQ(program.leaves[0].before.size(), 1u);
  EXPECT_EQ(FirstByteOf(program, program.leaves[0].before[0]), 16);
}

}  // namespace
}  // namespace acltape::analyzer
