// Compared outputs tell of the leaves that wrote them, and of those that they were made of.
#include "replayer/coverage.h"

#include <gtest/gtest.h>

#include <set>

#include "tests/analyzer/trace_builder.h"

namespace acltape::replayer {
namespace {

using test::In;
using test::Out;
using test::Tensor;
using test::TraceBuilder;
using test::Written;

class Coverage : public ::testing::Test {
 protected:
  // Call 1 makes b of a, call 2 changes b in place, call 3 makes c of b, call 4 makes d of a, and
  // call 5 is a relu on another device.
  void SetUp() override {
    TraceBuilder trace(file_.path());
    const Tensor a = trace.NewTensor({4});
    const Tensor b = trace.NewTensor({4});
    const Tensor c = trace.NewTensor({4});
    const Tensor d = trace.NewTensor({4});
    Tensor elsewhere = trace.NewTensor({4});
    elsewhere.layout.memory = "cuda:0";
    elsewhere.buffer = 0;
    trace.Call("aten::relu", {In("self", a)}, {Out("out", b)});
    trace.Call("aten::mul_.Tensor", {Written("self", b)});
    trace.Call("aten::relu", {In("self", b)}, {Out("out", c)});
    trace.Call("aten::relu", {In("self", a)}, {Out("out", d)});
    trace.Call("aten::relu", {In("self", elsewhere)}, {Out("out", elsewhere)});
    trace.Finish();
    reader_.emplace(file_.path());
    program_ = analyzer::LoadProgram(*reader_);
  }

  // "covered of computed, unseen" after a comparison of these calls.
  std::string Of(std::unordered_set<int64_t> compared, int64_t substituted = -1) {
    ReplayReport report;
    report.compared_calls = std::move(compared);
    MeasureCoverage(
        program_, [&](int64_t leaf) { return leaf != substituted; }, report);
    return std::to_string(report.coverage.covered) + " of " +
           std::to_string(report.coverage.computed) + ", " + std::to_string(report.unseen);
  }

  test::TemporaryTrace file_{"coverage"};
  std::optional<storage::Reader> reader_;
  analyzer::Program program_;
};

TEST_F(Coverage, AnOutputTellsOfAllThatItWasMadeOf) {
  EXPECT_EQ(Of({3}), "3 of 5, 1");
  EXPECT_EQ(Of({4}), "1 of 5, 1");
  EXPECT_EQ(Of({3, 4}), "4 of 5, 1");
  EXPECT_EQ(Of({}), "0 of 5, 1");
}

TEST(CoverageWalk, AResultOverwrittenBeforeAnythingReadsItCountsOnlyWhereItIsCompared) {
  test::TemporaryTrace file("coverage-overwritten");
  TraceBuilder trace(file.path());
  const Tensor a = trace.NewTensor({4});
  const Tensor b = trace.NewTensor({4});
  const Tensor pool = trace.NewTensor({8});
  const Tensor left = TraceBuilder::View(pool, {4}, {1}, 0);
  const Tensor right = TraceBuilder::View(pool, {4}, {1}, 4);
  trace.Call("aten::zero_", {Out("self", left)});                 // 0: nobody reads it
  trace.Call("aten::abs", {In("self", a), Out("out", right)});    // 1: beside what 3 reads
  trace.Call("aten::relu", {In("self", a), Out("out", left)});    // 2
  trace.Call("aten::relu", {In("self", left)}, {Out("out", b)});  // 3
  trace.Finish();
  const storage::Reader reader(file.path());
  const analyzer::Program program = analyzer::LoadProgram(reader);
  const auto of = [&](const std::set<int64_t>& compared) {
    CoverageWalk walk;
    for (int64_t leaf = 3; leaf >= 0; --leaf) {
      walk.Visit(program.uses[leaf].reads, program.uses[leaf].writes, CoverageWalk::Work::kComputes,
                 compared.contains(leaf));
    }
    return std::pair(walk.coverage().covered, walk.coverage().computed);
  };
  using Counts = std::pair<int64_t, int64_t>;
  EXPECT_EQ(of({3}), (Counts{2, 3}));
  EXPECT_EQ(of({0, 3}), (Counts{3, 4}));
  EXPECT_EQ(of({1, 3}), (Counts{3, 3}));
}

TEST_F(Coverage, ASubstitutedLeafComputesNothing) { EXPECT_EQ(Of({3, 4}, 0), "3 of 4, 1"); }

TEST_F(Coverage, EqualNeedsNineteenInTwenty) {
  ReplayReport report;
  report.compared = report.equal = 1;
  report.coverage = {100, 95};
  EXPECT_EQ(report.ExitCode(), 0);
  report.coverage.covered = 94;
  EXPECT_EQ(report.ExitCode(), 125);
  report.differing = 1;
  EXPECT_EQ(report.ExitCode(), 1);
}

}  // namespace
}  // namespace acltape::replayer
