// The calls that failed in a recording, on traces written by hand: which is the first, what follows
// from it, what was handled, and what lint says.
#include "analyzer/lint/failures.h"

#include <gtest/gtest.h>

#include "analyzer/acl/acl_program.h"
#include "analyzer/lint/lint.h"
#include "generated/meaning/interface_numbers.h"
#include "storage/process_choice.h"
#include "tests/analyzer/acl_trace_builder.h"

namespace acltape::analyzer {
namespace {

using lint::FailureRole;
using lint::Failures;
using test::In;
using test::Int;
using test::Out;
using test::Tensor;

constexpr int32_t kNoMemory = meaning::kAclErrorRtMemoryAllocation;
constexpr int32_t kKernelFailed = meaning::kAclErrorRtAicoreException;
constexpr int32_t kCaptured = meaning::kAclErrorRtStreamCaptured;

class FailuresTest : public testing::Test {
 protected:
  FailuresTest() : file_("failures"), trace(file_.path()) {
    stream = trace.NewStream();
    a = trace.Device({16});
    b = trace.Device({16});
  }

  void Work() { trace.Op("aclnnRelu", stream, {In("self", a), Out("out", b)}); }
  void Wait(int32_t code = 0) {
    trace.Interface("aclrtSynchronizeStream", {Int("stream", stream)}, stream, code);
  }
  void Says(const std::string& text) { trace.writer().AddFailureText(trace.last_call(), text); }
  void EndsWith(int code) { trace.writer().SetMeta("exit_code", std::to_string(code)); }

  Failures Find() {
    trace.Finish();
    reader_ = std::make_unique<storage::Reader>(file_.path());
    return lint::FindFailures(*reader_);
  }
  // "LINT-50 LINT-02", in order of calls.
  std::string Rules() {
    const analyzer::Work work = LoadWork(*reader_);
    std::string text;
    for (const lint::Finding& finding : lint::Lint(work, {}).findings) {
      text += (text.empty() ? "" : " ") + std::string(finding.rule->id);
    }
    return text;
  }

  test::TemporaryTrace file_;
  test::AclTraceBuilder trace;
  int64_t stream = 0;
  Tensor a, b;
  std::unique_ptr<storage::Reader> reader_;
};

TEST_F(FailuresTest, AProgramWithoutFailuresHasNone) {
  Work();
  Wait();
  EXPECT_TRUE(Find().rows.empty());
  EXPECT_EQ(Rules(), "");
}

TEST_F(FailuresTest, TheFirstFailureHasTheDevicesTextAndLaterOnesFollowFromIt) {
  Work();
  Wait(kKernelFailed);
  const int64_t first = trace.last_call();
  Says("task aclnnRelu failed: index 11, size 8");
  Wait(kKernelFailed);
  EndsWith(1);
  const Failures failures = Find();
  ASSERT_EQ(failures.rows.size(), 1u) << "equal failures of one line are one row";
  EXPECT_EQ(failures.rows[0].call_id, first);
  EXPECT_EQ(failures.rows[0].count, 2);
  EXPECT_EQ(failures.rows[0].operator_call, first - 1);
  EXPECT_EQ(FailureSentence(failures, failures.rows[0]),
            "aclrtSynchronizeStream failed 2 times: it gave 507015, the device said \"task "
            "aclnnRelu failed: index 11, size 8\"; the operator is call " +
                std::to_string(first - 1) + " aclnnRelu; the program ended with code 1");
  EXPECT_EQ(Rules(), "LINT-50");
}

TEST_F(FailuresTest, WhatFailsWhileTheProgramEndsIsNeverTheFirst) {
  Work();
  Wait(kKernelFailed);
  trace.Interface("aclrtDestroyStream", {Int("stream", stream)}, stream, kKernelFailed);
  const Failures failures = Find();
  ASSERT_EQ(failures.rows.size(), 2u);
  EXPECT_EQ(failures.First(), &failures.rows[0]);
  EXPECT_EQ(failures.rows[1].role, FailureRole::kTeardown);
  EXPECT_EQ(Rules(), "LINT-50");
}

TEST_F(FailuresTest, AFailureAtTheEndAloneIsNoFinding) {
  Work();
  Wait();
  trace.Interface("aclrtDestroyStream", {Int("stream", stream)}, stream,
                  meaning::kAclErrorRtParamInvalid);
  const Failures failures = Find();
  ASSERT_EQ(failures.rows.size(), 1u);
  EXPECT_EQ(failures.rows[0].role, FailureRole::kTeardown);
  EXPECT_EQ(failures.First(), nullptr);
  EXPECT_EQ(Rules(), "");
}

TEST_F(FailuresTest, AnAllocationThatSucceedsWhenItIsTriedAgainWasHandled) {
  trace.Interface("aclrtMalloc", {Int("size", 1 << 20)}, 0, kNoMemory);
  Says("no room for 1048576 bytes");
  trace.Device({4});  // takes less
  Work();
  Wait();
  const Failures failures = Find();
  ASSERT_EQ(failures.rows.size(), 1u);
  EXPECT_EQ(failures.rows[0].role, FailureRole::kHandled);
  EXPECT_EQ(failures.rows[0].text, "no room for 1048576 bytes");
  EXPECT_EQ(Rules(), "");
}

TEST_F(FailuresTest, AnAllocationThatEndsTheProgramIsAnError) {
  Work();
  Wait();
  trace.Interface("aclrtMalloc", {Int("size", 1 << 20)}, 0, kNoMemory);
  EndsWith(1);
  const Failures failures = Find();
  ASSERT_NE(failures.First(), nullptr);
  EXPECT_EQ(failures.First()->text, "") << "an absent text is not known";
  EXPECT_NE(FailureSentence(failures, *failures.First()).find("what the device said is not known"),
            std::string::npos);
  EXPECT_EQ(Rules(), "LINT-50");
}

TEST_F(FailuresTest, AnAnswerToAQuestionAboutAnEarlierErrorIsNoFailure) {
  Work();
  Wait();
  trace.Interface("aclrtPeekAtLastError", {Int("level", 0)}, 0, kNoMemory);
  EXPECT_TRUE(Find().rows.empty());
}

TEST_F(FailuresTest, WorkThatAProgramGoesOnWithoutIsANoticeOfItsOwn) {
  Work();
  trace.Op("aclnnRelu", stream, {In("self", a), Out("out", b)}, kNoMemory);
  trace.Op("aclnnAbs", stream, {In("self", a), Out("out", b)});
  Wait();
  const Failures failures = Find();
  ASSERT_EQ(failures.rows.size(), 1u);
  EXPECT_EQ(Rules(), failures.rows[0].role == FailureRole::kWentOn ? "LINT-51" : "");
}

// A program over two processes: the first one asks the device alone, and the second one works.
TEST(ProcessChoice, IsTheOnlyProcessThatLaunchedOperatorsOfThoseThatOpenedADevice) {
  const test::TemporaryTrace file("choice");
  test::AclTraceBuilder trace(file.path());
  trace.NewStream();
  storage::Handle other;
  other.id = 77;
  other.process_id = 2;
  trace.writer().AddProcess(2, 200, "child");
  trace.writer().AddStream(other);
  const Tensor a = trace.Device({4}), b = trace.Device({4});
  trace.writer().AddThread(5, 2, 200, "child");
  trace.ThreadOf(5);
  trace.Op("aclnnRelu", other.id, {In("self", a), Out("out", b)});
  trace.Finish();
  const storage::Reader reader(file.path());
  EXPECT_EQ(storage::DefaultProcess(reader), 2);
  EXPECT_EQ(storage::ChosenProcessText(reader),
            "of 2 processes in '" + file.path() +
                "' this is about 2 (child, pid 200); --process picks another");
  const AclProgram program = LoadAclProgram(reader);
  EXPECT_FALSE(program.calls.empty());
  for (const AclCall& call : program.calls) EXPECT_EQ(call.call.thread_id, 5) << call.op->name;
  ASSERT_EQ(program.streams.size(), 1u);
  EXPECT_EQ(program.streams.begin()->first, other.id);
}

TEST_F(FailuresTest, AFailureInACaptureIsToldByTheRuleThatPredictsIt) {
  trace.BeginCapture(stream);
  Work();
  Wait(kCaptured);
  trace.EndCapture(stream);
  const Failures failures = Find();
  ASSERT_NE(failures.First(), nullptr);
  EXPECT_TRUE(failures.InCapture());
  EXPECT_EQ(Rules(), "LINT-02") << "and not LINT-50 besides";
}

}  // namespace
}  // namespace acltape::analyzer
