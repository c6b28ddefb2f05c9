// The graphs of programs written by hand: what an execution stands for, and what makes its values
// wrong.
#include <gtest/gtest.h>

#include "analyzer/executions/baked_branches.h"
#include "analyzer/executions/element_flow.h"
#include "analyzer/executions/kept_results.h"
#include "analyzer/executions/missed_inputs.h"
#include "analyzer/executions/missed_results.h"
#include "analyzer/executions/overwritten_results.h"
#include "analyzer/executions/own_graphs.h"
#include "analyzer/lint/lint.h"
#include "tests/analyzer/acl_trace_builder.h"

namespace acltape::analyzer {
namespace {

using executions::FlowTensor;
using test::AclTraceBuilder;
using test::In;
using test::Int;
using test::Out;
using test::TemporaryTrace;
using test::Tensor;
using Floats = std::vector<float>;

class ExecutionsTest : public testing::Test {
 protected:
  ExecutionsTest() : file_("executions"), trace(file_.path()) {
    main = trace.NewStream();
    side = trace.NewStream();
    for (Tensor* tensor : {&a, &b, &c, &d}) *tensor = trace.Device({16});
  }

  void Relu(int64_t stream, const Tensor& from, const Tensor& to) {
    trace.Op("aclnnRelu", stream, {In("self", from), Out("out", to)});
  }
  int64_t CaptureRelu(const Tensor& from, const Tensor& to) {
    trace.BeginCapture(main);
    Relu(main, from, to);
    return trace.EndCapture(main);
  }

  executions::OwnGraphs Find() {
    trace.Finish();
    reader_ = std::make_unique<storage::Reader>(file_.path());
    work_ = LoadWork(*reader_);
    return executions::FindOwnGraphs(work_, work_);
  }
  // "LINT-17 LINT-19", in order of calls.
  std::string Rules() {
    trace.Finish();
    reader_ = std::make_unique<storage::Reader>(file_.path());
    work_ = LoadWork(*reader_);
    std::string text;
    for (const lint::Finding& finding : lint::Lint(work_, {}).findings) {
      text += (text.empty() ? "" : " ") + std::string(finding.rule->id);
    }
    return text;
  }

  TemporaryTrace file_;
  AclTraceBuilder trace;
  int64_t main, side;
  Tensor a, b, c, d;
  std::unique_ptr<storage::Reader> reader_;
  Work work_;
};

TEST_F(ExecutionsTest, AnExecutionStandsForTheCallsOfItsCapture) {
  const int64_t model = CaptureRelu(a, b);
  trace.Execute(model, main);
  Relu(main, b, c);
  trace.Execute(model, main);
  const executions::OwnGraphs graphs = Find();
  ASSERT_EQ(graphs.graphs.size(), 1u);
  EXPECT_EQ(graphs.graphs[0].launches, 1u);
  EXPECT_EQ(graphs.graphs[0].executed.size(), 2u);
  ASSERT_EQ(graphs.turns.size(), 3u);
  EXPECT_EQ(graphs.turns[0].graph, 0);
  EXPECT_EQ(graphs.turns[1].graph, -1);
  EXPECT_EQ(graphs.turns[2].graph, 0);
}

TEST_F(ExecutionsTest, ACaptureThatFailedIsNoGraph) {
  trace.BeginCapture(main);
  Relu(main, a, b);
  trace.EndCapture(main, 107025);
  EXPECT_TRUE(Find().graphs.empty());
}

TEST_F(ExecutionsTest, AFootprintHasWhatTheGraphReadsFromBeforeAndWhatItLeaves) {
  trace.BeginCapture(main);
  Relu(main, a, b);  // b is read from inside afterwards
  Relu(main, b, c);
  Relu(main, a, b);
  trace.Execute(trace.EndCapture(main), main);
  const executions::OwnGraphs graphs = Find();
  ASSERT_EQ(graphs.graphs.size(), 1u);
  const executions::Footprint& footprint = graphs.graphs[0].footprint;
  ASSERT_EQ(footprint.reads.size(), 1u);
  EXPECT_EQ(footprint.reads[0].buffer, a.buffer);
  ASSERT_EQ(footprint.writes.size(), 2u);
  uint32_t last = 0;
  for (const uint32_t entry : graphs.graphs[0].held) {
    if (work_.form(entry).acl_kind() == AclCallKind::kOperator) last = entry;
  }
  EXPECT_EQ(footprint.writes[0].buffer, b.buffer);
  EXPECT_EQ(footprint.writes[0].entry, last);  // it wrote b last
  EXPECT_EQ(footprint.writes[1].buffer, c.buffer);
}

TEST_F(ExecutionsTest, ResultsThatNobodyReadBeforeTheyAreOverwrittenAreKeptResults) {
  const int64_t model = CaptureRelu(a, b);
  for (int i = 0; i < 3; ++i) trace.Execute(model, main);
  trace.Synchronize(main);
  for (int i = 0; i < 3; ++i) trace.Download(b, Floats(16, 1.0f));
  const executions::OwnGraphs graphs = Find();
  const auto rows = executions::FindKeptResults(graphs, [](size_t) { return 1; });
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].unread, 2u);
  EXPECT_EQ(rows[0].reads, 3u);
}

TEST_F(ExecutionsTest, ResultsThatAreReadInEachRoundAreNone) {
  const int64_t model = CaptureRelu(a, b);
  for (int i = 0; i < 3; ++i) {
    trace.Execute(model, main);
    trace.Synchronize(main);
    trace.Download(b, Floats(16, 1.0f));
  }
  const executions::OwnGraphs graphs = Find();
  EXPECT_TRUE(executions::FindKeptResults(graphs, [](size_t) { return 1; }).empty());
}

TEST_F(ExecutionsTest, AReadBesideAnExecutionOfAnotherStreamIsARace) {
  const int64_t model = CaptureRelu(a, b);
  trace.Execute(model, main);
  Relu(side, b, c);  // nothing orders it after the execution
  EXPECT_EQ(Rules(), "LINT-19");
}

TEST_F(ExecutionsTest, AReadThatWaitsForTheExecutionIsNone) {
  const int64_t model = CaptureRelu(a, b);
  trace.Execute(model, main);
  const int64_t event = trace.NewEvent();
  trace.Record(event, main);
  trace.Wait(side, event);
  Relu(side, b, c);
  EXPECT_EQ(Rules(), "");
}

// A program launches the graph, updates its group on another stream and then releases the graph,
// which waits for a value before the group (rule UPD-06).
class UpdateByValueTest : public ExecutionsTest {
 protected:
  UpdateByValueTest() { word = trace.Device({8}, storage::DType::kUint8); }

  void WaitForValue() {
    trace.Interface("aclrtValueWait",
                    {In("devAddr", word), Int("value", 1), Int("flag", 1), Int("stream", main)},
                    main);
  }
  void WriteValue(int64_t stream, int64_t value) {
    trace.Interface(
        "aclrtValueWrite",
        {Out("devAddr", word), Int("value", value), Int("flag", 0), Int("stream", stream)}, stream);
  }
  void BeginGroup() { trace.Interface("aclmdlRICaptureTaskGrpBegin", {Int("stream", main)}, main); }
  void EndGroup() {
    trace.Interface("aclmdlRICaptureTaskGrpEnd", {Int("stream", main), Int("handle", 0x77)}, main);
  }
  void Update() {
    trace.Interface("aclmdlRICaptureTaskUpdateBegin", {Int("stream", side), Int("handle", 0x77)},
                    side);
    Relu(side, a, b);
    trace.Interface("aclmdlRICaptureTaskUpdateEnd", {Int("stream", side)}, side);
  }

  Tensor word;
};

TEST_F(UpdateByValueTest, AGraphThatWaitsBeforeItsGroupMayBeLaunchedBeforeTheUpdate) {
  trace.BeginCapture(main);
  WaitForValue();
  WriteValue(main, 0);
  BeginGroup();
  Relu(main, a, b);
  EndGroup();
  const int64_t model = trace.EndCapture(main);
  for (int i = 0; i < 3; ++i) {
    trace.Synchronize(main);
    trace.Execute(model, main);
    Update();
    WriteValue(side, 1);
  }
  EXPECT_EQ(Rules(), "");
}

TEST_F(UpdateByValueTest, AGraphThatWaitsAfterItsGroupMayNot) {
  trace.BeginCapture(main);
  BeginGroup();
  Relu(main, a, b);
  EndGroup();
  WaitForValue();
  WriteValue(main, 0);
  const int64_t model = trace.EndCapture(main);
  trace.Execute(model, main);
  Update();
  WriteValue(side, 1);
  EXPECT_EQ(Rules(), "LINT-21");
}

TEST_F(ExecutionsTest, AResultInMemoryThatAnotherGraphUsesIsOverwritten) {
  const Tensor result = trace.Device({16}, storage::DType::kFloat32, 0x900000);
  const Tensor temporary = trace.Device({16}, storage::DType::kFloat32, 0x900000);
  const int64_t first = CaptureRelu(a, result);
  const int64_t second = CaptureRelu(b, temporary);
  trace.Execute(first, main);
  trace.Execute(second, main);
  Relu(main, result, c);
  const auto rows = executions::FindOverwrittenResults(Find());
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(work_.buffers(rows[0].writer)[1], result.buffer);
  EXPECT_EQ(work_.buffers(rows[0].other)[1], temporary.buffer);
}

TEST_F(ExecutionsTest, AResultThatIsReadBeforeTheOtherGraphRunsIsNone) {
  const Tensor result = trace.Device({16}, storage::DType::kFloat32, 0x900000);
  const Tensor temporary = trace.Device({16}, storage::DType::kFloat32, 0x900000);
  const int64_t first = CaptureRelu(a, result);
  const int64_t second = CaptureRelu(b, temporary);
  for (int i = 0; i < 2; ++i) {
    trace.Execute(second, main);
    trace.Execute(first, main);
    Relu(main, result, c);
  }
  EXPECT_TRUE(executions::FindOverwrittenResults(Find()).empty());
}

// A tensor for each round, from one line.
class MissedInputsTest : public ExecutionsTest {
 protected:
  Tensor NewInput() {
    Tensor tensor = trace.Device({16});
    trace.Op("aclnnInplaceOne", main, {Out("selfRef", tensor)});
    return tensor;
  }
  std::vector<executions::MissedInput> Missed() {
    return executions::FindMissedInputs(Find(), [](size_t) { return 1; });
  }
};

TEST_F(MissedInputsTest, ATensorLikeTheInputThatNothingReadsIsMissed) {
  const int64_t model = CaptureRelu(a, b);
  for (int i = 0; i < 3; ++i) {
    NewInput();
    trace.Execute(model, main);
  }
  const auto rows = Missed();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].rounds, 3u);
  EXPECT_FALSE(rows[0].late);
}

TEST_F(MissedInputsTest, ATensorThatIsCopiedIntoTheInputIsNone) {
  const int64_t model = CaptureRelu(a, b);
  for (int i = 0; i < 3; ++i) {
    Relu(main, NewInput(), a);
    trace.Execute(model, main);
  }
  EXPECT_TRUE(Missed().empty());
}

TEST_F(MissedInputsTest, ATensorBesideAnInputThatIsFedIsNone) {
  const int64_t model = CaptureRelu(a, b);
  for (int i = 0; i < 3; ++i) {
    NewInput();
    Relu(main, c, a);
    trace.Execute(model, main);
  }
  EXPECT_TRUE(Missed().empty());
}

// Two graphs of equal lines, of which the first is executed in each round.
class OtherResultsTest : public ExecutionsTest {
 protected:
  OtherResultsTest() { first = CaptureRelu(a, b), second = CaptureRelu(c, d); }
  std::vector<executions::OtherResult> Others() {
    return executions::FindOtherResults(Find(), [](size_t) { return 1; });
  }

  int64_t first = 0, second = 0;
};

TEST_F(OtherResultsTest, TheResultOfAGraphThatDidNotRunIsAnotherOne) {
  for (int i = 0; i < 3; ++i) {
    trace.Execute(first, main);
    trace.Download(d, Floats(16, 1.0f));
  }
  const auto rows = Others();
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0].rounds, 3u);
}

TEST_F(OtherResultsTest, ThatOfTheExecutedGraphIsNone) {
  for (int i = 0; i < 3; ++i) {
    trace.Execute(first, main);
    trace.Download(b, Floats(16, 1.0f));
    if (i == 0) trace.Download(d, Floats(16, 1.0f));
  }
  EXPECT_TRUE(Others().empty());
}

TEST_F(OtherResultsTest, GraphsThatRunInTurnAndAreReadARoundLaterAreNone) {
  for (int i = 0; i < 3; ++i) {
    trace.Execute(first, main);
    if (i > 0) trace.Download(d, Floats(16, 1.0f));
    trace.Execute(second, main);
    trace.Download(b, Floats(16, 1.0f));
  }
  EXPECT_TRUE(Others().empty());
}

// A function of the program: each operator is a line of it.
class BakedBranchesTest : public ExecutionsTest {
 protected:
  // The letters name operators that the function runs one after the other: from a to b, from b to
  // c, then from c to b and so on.
  void Run(const std::string& path, int64_t stream) {
    Tensor from = a, to = b;
    for (const char letter : path) {
      trace.Op(kOperators.at(letter), stream, {In("self", from), Out("out", to)});
      from = to;
      to = to.buffer == b.buffer ? c : b;
    }
  }
  // An operator of another function.
  void Elsewhere() { trace.Op("aclnnSign", main, {In("self", b), Out("out", a)}); }
  void Capture(const std::string& path) {
    trace.BeginCapture(main);
    Run(path, main);
    const int64_t model = trace.EndCapture(main);
    for (int i = 0; i < 2; ++i) trace.Execute(model, main);
  }

  // "neg | relu" for a graph with neg where a run had relu; "-" for a side that does nothing there.
  std::string Branches() {
    const executions::OwnGraphs graphs = Find();
    const auto line = [&](size_t entry) { return static_cast<int32_t>(work_.op(entry).op_id); };
    const auto function = [&](size_t entry) {
      const std::string& name = work_.op(entry).name;
      if (!name.starts_with("aclnn")) return 0;
      return name == "aclnnSign" ? 2 : 1;
    };
    std::string text;
    for (const executions::BakedBranch& branch :
         executions::FindBakedBranches(graphs, line, function)) {
      const auto name = [&](int64_t entry) {
        return entry < 0 ? std::string("-") : work_.op(static_cast<size_t>(entry)).name.substr(5);
      };
      text += (text.empty() ? "" : ", ") + name(branch.held) + " | " + name(branch.eager);
    }
    return text;
  }

  const std::map<char, std::string> kOperators = {
      {'e', "aclnnExp"}, {'n', "aclnnNeg"}, {'r', "aclnnRelu"}, {'s', "aclnnSqrt"}};
};

TEST_F(BakedBranchesTest, AnotherLineBetweenEqualOnesIsABranch) {
  Run("ens", main);
  Run("ers", main);
  Capture("ens");
  EXPECT_EQ(Branches(), "Neg | Relu");
}

TEST_F(BakedBranchesTest, ABranchThatSomeGraphHoldsIsServed) {
  Run("ens", main);
  Run("ers", main);
  Capture("ens");
  Capture("ers");
  EXPECT_EQ(Branches(), "");
}

TEST_F(BakedBranchesTest, ALineThatTheRunLacksCountsIfWhatFollowsNeedsIt) {
  Run("es", main);
  Capture("ens");
  EXPECT_EQ(Branches(), "Neg | -");
}

TEST_F(BakedBranchesTest, TurnsOfALoopAreABranch) {
  Run("ens", main);
  Run("ennns", main);
  Capture("ens");
  EXPECT_EQ(Branches(), "- | Neg");
}

TEST_F(BakedBranchesTest, WhatTheFirstRunAloneDoesIsNone) {
  Run("ens", main);
  Elsewhere();
  Run("es", main);
  Capture("es");
  EXPECT_EQ(Branches(), "");
}

TEST_F(BakedBranchesTest, OneChangeBeforeTheCaptureIsNone) {
  for (const char* path : {"ers", "ers", "ens", "ens"}) Run(path, main);
  Capture("ens");
  EXPECT_EQ(Branches(), "");
}

TEST_F(BakedBranchesTest, ABranchThatRunsBesideTheGraphAndIsUsedIsNone) {
  Capture("ens");
  Run("ers", main);
  trace.Download(b, Floats(16, 1.0f));
  EXPECT_EQ(Branches(), "");
}

TEST_F(BakedBranchesTest, WorkBesideWhatFollowsIsNone) {
  Run("es", main);
  trace.Op("aclnnExp", main, {In("self", a), Out("out", b)});
  trace.Op("aclnnNeg", main, {In("self", b), Out("out", d)});  // a measure that nothing needs
  trace.Op("aclnnSqrt", main, {In("self", b), Out("out", c)});
  Capture("es");
  EXPECT_EQ(Branches(), "");
}

TEST_F(BakedBranchesTest, AMeasureAtTheEndOfARunIsNone) {
  for (const char* path : {"es", "esn", "es"}) Run(path, main);
  Capture("es");
  EXPECT_EQ(Branches(), "");
}

TEST_F(BakedBranchesTest, OneMoreTurnAtTheEndIsABranch) {
  for (const char* path : {"en", "enn", "en"}) Run(path, main);
  Capture("en");
  EXPECT_EQ(Branches(), "- | Neg");
}

TEST_F(BakedBranchesTest, RunsOfOtherWorkHaveNothingInCommon) {
  Run("rr", main);
  Capture("ens");
  EXPECT_EQ(Branches(), "");
}

class ElementFlowTest : public testing::Test {
 protected:
  static storage::Layout Of(const std::vector<int64_t>& shape) {
    storage::Layout layout;
    layout.dtype = storage::DType::kFloat32;
    layout.shape = shape;
    layout.strides = test::RowMajor(shape);
    return layout;
  }
  static std::string Text(const std::vector<char>& marked) {
    std::string text;
    for (const char one : marked) text += one != 0 ? '1' : '0';
    return text;
  }
};

TEST_F(ElementFlowTest, ElementWiseWorkBroadcastsWhatIsMarked) {
  const storage::Layout wide = Of({2, 3}), row = Of({3});
  const std::vector<FlowTensor> inputs = {{0, &wide, {}}, {1, &row, {0, 1, 0}}};
  EXPECT_EQ(Text(executions::FlowOf("aten::add", {}, inputs, wide)), "010010");
  EXPECT_EQ(Text(executions::FlowOf("aten::add_", {}, inputs, wide)), "010010");
}

TEST_F(ElementFlowTest, AReductionMixesTheDimensionsThatItNames) {
  const storage::Layout wide = Of({2, 3}), rows = Of({2}), all = Of({});
  storage::SignatureArgument dim;
  dim.name = "dim";
  dim.kind = storage::ValueKind::kIntList;
  dim.integers = {-1};
  const std::vector<FlowTensor> inputs = {{0, &wide, {0, 0, 0, 0, 1, 0}}};
  EXPECT_EQ(Text(executions::FlowOf("aten::sum", {dim}, inputs, rows)), "01");
  EXPECT_EQ(Text(executions::FlowOf("aten::sum", {}, inputs, all)), "1");
}

TEST_F(ElementFlowTest, RowsOfTheFirstFactorMakeRowsAndColumnsOfTheSecondColumns) {
  const storage::Layout left = Of({2, 3}), right = Of({3, 2}), product = Of({2, 2});
  const std::vector<FlowTensor> row = {{0, &left, {0, 0, 0, 0, 1, 0}}, {1, &right, {}}};
  EXPECT_EQ(Text(executions::FlowOf("aten::mm", {}, row, product)), "0011");
  const std::vector<FlowTensor> column = {{0, &left, {}}, {1, &right, {0, 1, 0, 0, 0, 0}}};
  EXPECT_EQ(Text(executions::FlowOf("aten::mm", {}, column, product)), "0101");
}

TEST_F(ElementFlowTest, OfOtherOperatorsNothingIsKnown) {
  const storage::Layout wide = Of({2, 3});
  const std::vector<FlowTensor> inputs = {{0, &wide, {1, 1, 1, 1, 1, 1}}};
  EXPECT_FALSE(executions::IsFlowKnown("aten::index_select"));
  EXPECT_EQ(Text(executions::FlowOf("aten::index_select", {}, inputs, wide)), "");
}

}  // namespace
}  // namespace acltape::analyzer
