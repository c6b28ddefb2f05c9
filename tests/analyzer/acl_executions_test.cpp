// Programs that call the ACL interface: their executions, copies and waits, with the right forms of
// each. tests/lint/graph_values.cpp has whole programs.
#include <gtest/gtest.h>

#include "analyzer/lint/lint.h"
#include "tests/analyzer/acl_trace_builder.h"

namespace acltape::analyzer {
namespace {

using test::AclTraceBuilder;
using test::In;
using test::Int;
using test::Out;
using test::Scalar;
using test::TemporaryTrace;
using test::Tensor;
using test::Written;

class AclExecutionsTest : public testing::Test {
 protected:
  AclExecutionsTest() : file_("acl_executions"), trace(file_.path()) {
    main = trace.NewStream();
    side = trace.NewStream();
    for (Tensor* tensor : {&a, &b}) {
      *tensor = trace.Device({16});
      trace.Upload(*tensor, Content(1));
    }
  }

  static std::vector<float> Content(float value) { return std::vector<float>(16, value); }
  void Relu(int64_t stream, const Tensor& from, const Tensor& to) {
    trace.Op("aclnnRelu", stream, {In("self", from), Out("out", to)});
  }
  // "LINT-10 LINT-17", in order of calls.
  std::string Rules() {
    trace.Finish();
    const storage::Reader reader(file_.path());
    const Work work = LoadWork(reader);
    std::string text;
    for (const lint::Finding& finding : lint::Lint(work, {}).findings) {
      text += (text.empty() ? "" : " ") + std::string(finding.rule->id);
    }
    return text;
  }

  TemporaryTrace file_;
  AclTraceBuilder trace;
  int64_t main, side;
  Tensor a, b;
};

TEST_F(AclExecutionsTest, ALaunchThatAnUpdateMovesElsewhereMayLoseItsMemory) {
  const Tensor c = trace.Device({16});
  trace.Upload(c, Content(1));
  trace.BeginCapture(main);
  trace.Interface("aclmdlRICaptureTaskGrpBegin", {Int("stream", main)}, main);
  Relu(main, a, b);
  trace.Interface("aclmdlRICaptureTaskGrpEnd", {Int("stream", main), Int("handle", 7)}, main);
  const int64_t model = trace.EndCapture(main);
  trace.Interface("aclmdlRICaptureTaskUpdateBegin", {Int("stream", side), Int("handle", 7)}, side);
  Relu(side, c, b);
  trace.Interface("aclmdlRICaptureTaskUpdateEnd", {Int("stream", side)}, side);
  trace.Synchronize(side);
  trace.Free(a);
  trace.Execute(model, main);
  EXPECT_EQ(Rules(), "");
}

TEST_F(AclExecutionsTest, AWaitThatFindsFailedWorkHasWaited) {
  constexpr int kKernelFailed = 507015;
  trace.BeginCapture(main);
  Relu(main, a, b);
  const int64_t model = trace.EndCapture(main);
  trace.Execute(model, main);
  trace.Interface("aclrtSynchronizeStream", {Int("stream", main)}, main, kKernelFailed);
  trace.Upload(a, Content(2));
  trace.Execute(model, side);
  trace.Synchronize(side);
  EXPECT_EQ(Rules().find("LINT-19"), std::string::npos);
}

TEST_F(AclExecutionsTest, AWaitThatTimedOutHasNot) {
  constexpr int kTimeout = 507046;
  trace.BeginCapture(main);
  Relu(main, a, b);
  const int64_t model = trace.EndCapture(main);
  trace.Execute(model, main);
  trace.Interface("aclrtSynchronizeStreamWithTimeout", {Int("stream", main), Int("timeout", 1)},
                  main, kTimeout);
  trace.Upload(a, Content(2));
  trace.Execute(model, main);
  EXPECT_NE(Rules().find("LINT-19"), std::string::npos);
}

TEST_F(AclExecutionsTest, ACopyOfTheHostWaitsForNoStreamAlsoWhereThereIsOne) {
  trace.BeginCapture(main);
  Relu(main, a, b);
  const int64_t model = trace.EndCapture(main);
  trace.Execute(model, main);
  trace.Download(b, Content(1));
  EXPECT_EQ(Rules(), "LINT-19");
}

TEST_F(AclExecutionsTest, AGraphIsEmptyWhereTheThreadThatLaunchesForAllUsedAnotherStream) {
  trace.BeginCapture(main);
  trace.Thread(2);  // a thread of the adapter
  Relu(side, a, b);
  trace.ThreadOf(1);
  const int64_t model = trace.EndCapture(main);
  trace.Synchronize(side);
  trace.Execute(model, main);
  EXPECT_EQ(Rules(), "LINT-44");
}

// A state beside other tensors in one block, as a framework's pool has them.
class WarmPoolTest : public AclExecutionsTest {
 protected:
  WarmPoolTest() {
    pool = trace.Device({64});
    trace.Upload(pool, std::vector<float>(64, 0));
  }
  Tensor Part(int64_t index) const {
    Tensor part = pool;
    part.layout.shape = {16};
    part.layout.byte_offset = index * 64;
    return part;
  }
  void Step(const std::string& first, bool line_of_second) {
    trace.Line("train.py", 10);
    trace.Op(first, main,
             {In("self", Part(0)), In("other", Part(1)), Scalar("alpha", 1), Out("out", Part(2))});
    line_of_second ? trace.Line("train.py", 11) : trace.NoLine();
    Relu(main, Part(2), Part(3));
    trace.Line("train.py", 12);
    trace.Op("aclnnInplaceCopy", main, {Written("selfRef", Part(0)), In("src", Part(3))});
  }
  std::string Run(const std::string& first, bool line_of_second, bool reset) {
    for (int i = 0; i < 2; ++i) Step(first, line_of_second);
    trace.BeginCapture(main);
    Step(first, line_of_second);
    const int64_t model = trace.EndCapture(main);
    trace.Line("train.py", 20);
    if (reset) trace.Upload(Part(0), Content(0), main);
    for (int i = 0; i < 2; ++i) trace.Execute(model, main);
    trace.Synchronize(main);
    trace.Download(Part(0), Content(1));
    return Rules();
  }
  Tensor pool;
};

TEST_F(WarmPoolTest, WarmUpsMoveAStateThatLiesBesideOtherTensors) {
  EXPECT_EQ(Run("aclnnAdd", true, false), "LINT-42");
}
TEST_F(WarmPoolTest, AStateThatIsSetBackIsRight) { EXPECT_EQ(Run("aclnnAdd", true, true), ""); }
TEST_F(WarmPoolTest, LaunchesWithoutALineMayBeBackwardWorkOfATraining) {
  EXPECT_EQ(Run("aclnnAdd", false, false), "");
}
TEST_F(WarmPoolTest, AnOperatorOfTrainingsTellsOfOne) {
  EXPECT_EQ(Run("aclnnMseLossBackward", true, false), "");
}

class RewrittenSourceTest : public AclExecutionsTest {
 protected:
  RewrittenSourceTest() { pinned = trace.Pinned({16}); }
  void Copy(float value) { trace.UploadPinned(a, pinned, Content(value), main); }
  Tensor pinned;
};

TEST_F(RewrittenSourceTest, MemoryThatIsFilledBeforeItsCopyHasEndedIsNamed) {
  Copy(1);
  Copy(2);
  Relu(main, a, b);
  EXPECT_EQ(Rules(), "LINT-45");
}

TEST_F(RewrittenSourceTest, AWaitBetweenTheCopiesIsRight) {
  Copy(1);
  trace.Synchronize(main);
  Copy(2);
  Relu(main, a, b);
  EXPECT_EQ(Rules().find("LINT-45"), std::string::npos);
}

TEST_F(RewrittenSourceTest, TheSameContentMayBeCopiedTwice) {
  Copy(1);
  Copy(1);
  Relu(main, a, b);
  EXPECT_EQ(Rules(), "");
}

TEST_F(RewrittenSourceTest, MemoryIntoWhichTheDeviceCopiesMayChangeByThat) {
  Copy(1);
  trace.Copy(Out("dst", trace.Bytes(pinned)), In("src", trace.Bytes(b)), 64, 2, main);
  Copy(2);
  Relu(main, a, b);
  EXPECT_EQ(Rules(), "");
}

}  // namespace
}  // namespace acltape::analyzer
