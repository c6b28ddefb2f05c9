#include "analyzer/diff/diff.h"

#include <gtest/gtest.h>

#include <chrono>
#include <set>

#include "storage/error.h"
#include "tests/analyzer/acl_trace_builder.h"
#include "tests/analyzer/random_flow.h"

namespace acltape::analyzer {
namespace {

using test::FlowProgram;
using test::FlowValues;
using test::In;
using test::Out;
using test::TemporaryTrace;
using test::Tensor;
using test::TraceBuilder;

diff::DiffReport DiffFiles(const std::string& a, const std::string& b,
                           const diff::DiffOptions& options = {}) {
  const storage::Reader left(a);
  const storage::Reader right(b);
  return diff::Diff(left, right, options);
}

// `effect`: whether a call of both programs has another result.
diff::DiffReport DiffFlows(const FlowProgram& a, const FlowProgram& b, FlowValues values,
                           bool* effect = nullptr) {
  const TemporaryTrace left("diff-a");
  const TemporaryTrace right("diff-b");
  const auto of_a = test::WriteFlow(a, left.path(), values);
  const auto of_b = test::WriteFlow(b, right.path(), values);
  if (effect != nullptr) {
    *effect = std::any_of(of_a.begin(), of_a.end(), [&](const auto& result) {
      const auto other = of_b.find(result.first);
      return other != of_b.end() && other->second != result.second;
    });
  }
  return DiffFiles(left.path(), right.path());
}

// Counts what an alignment found of the edits that were planted.
struct Recovery {
  int64_t kept = 0;   // calls of both programs
  int64_t right = 0;  // calls among them that are aligned with themselves
  int64_t programs = 0;
  int64_t exact = 0;  // programs in which nothing was missed
  // Programs whose first divergence is an edit, or none where no edit has an effect.
  int64_t blamed = 0;

  void Take(const FlowProgram& a, const FlowProgram& b, const std::vector<int>& deleted,
            const diff::DiffReport& report, bool effect) {
    std::set<int> in_a;
    for (const auto& call : a) in_a.insert(call.uid);
    int64_t of_both = 0;
    for (const auto& call : b) of_both += in_a.count(call.uid) != 0;
    int64_t found = 0;
    for (const diff::DiffRow& row : report.rows) {
      if (row.a_calls.empty() || row.b_calls.empty()) continue;
      found += a[row.a_calls.back() - 1].uid == b[row.b_calls.back() - 1].uid;
    }
    kept += of_both;
    right += found;
    ++programs;
    exact += found == of_both;
    if (report.first < 0) {
      blamed += !effect;
      return;
    }
    const diff::DiffRow& first = report.rows[report.first];
    bool edit = false;
    for (const int64_t call : first.b_calls) edit = edit || b[call - 1].edited;
    for (const int64_t call : first.a_calls) {
      edit = edit || std::find(deleted.begin(), deleted.end(), a[call - 1].uid) != deleted.end();
    }
    blamed += edit;
  }
  double recall() const { return static_cast<double>(right) / static_cast<double>(kept); }
};

Recovery Recover(int layers, int edits, FlowValues values, unsigned seed) {
  Recovery recovery;
  std::mt19937 random(seed);
  for (int round = 0; round < 40; ++round) {
    const int calls = layers > 0 ? 12 : 40 + static_cast<int>(random() % 160);
    const FlowProgram a = test::RandomFlow(random, calls, layers);
    std::vector<int> deleted;
    const FlowProgram b = test::EditFlow(a, random, edits, deleted);
    bool effect = false;
    const diff::DiffReport report = DiffFlows(a, b, values, &effect);
    recovery.Take(a, b, deleted, report, effect);
  }
  return recovery;
}

void Print(const char* what, int edits, const Recovery& recovery) {
  printf(
      "%-28s %d edits: %.4f of %lld calls aligned with themselves, %lld of %lld programs without "
      "a miss, first divergence right in %lld\n",
      what, edits, recovery.recall(), static_cast<long long>(recovery.kept),
      static_cast<long long>(recovery.exact), static_cast<long long>(recovery.programs),
      static_cast<long long>(recovery.blamed));
}

TEST(DiffAlignment, RecoversPlantedEditsOfRandomPrograms) {
  for (const int edits : {1, 3, 8}) {
    const Recovery recovery = Recover(0, edits, FlowValues::kAll, 11);
    Print("random, values", edits, recovery);
    EXPECT_GE(recovery.recall(), 0.998);
    EXPECT_EQ(recovery.blamed, recovery.programs);
  }
}

TEST(DiffAlignment, RecoversPlantedEditsFromStructureAlone) {
  for (const int edits : {1, 3, 8}) {
    const Recovery recovery = Recover(0, edits, FlowValues::kNone, 12);
    Print("random, no values", edits, recovery);
    EXPECT_GE(recovery.recall(), 0.998);
    EXPECT_EQ(recovery.blamed, recovery.programs);
  }
}

TEST(DiffAlignment, RecoversPlantedEditsAmongEqualLayers) {
  for (const int edits : {1, 3, 8}) {
    const Recovery recovery = Recover(12, edits, FlowValues::kDigest, 13);
    Print("twelve layers, digests", edits, recovery);
    EXPECT_GE(recovery.recall(), 0.998);
    EXPECT_EQ(recovery.blamed, recovery.programs);
  }
}

TEST(DiffAlignment, AProgramIsEqualToItselfInAnotherOrder) {
  std::mt19937 random(5);
  for (int round = 0; round < 20; ++round) {
    const FlowProgram a = test::RandomFlow(random, 120);
    FlowProgram b = a;
    test::ShuffleFlow(b, random, 300);
    for (const FlowValues values : {FlowValues::kAll, FlowValues::kDigest}) {
      const diff::DiffReport report = DiffFlows(a, b, values);
      EXPECT_EQ(report.first, -1);
      EXPECT_EQ(report.counts.aligned, 120);
      EXPECT_EQ(report.counts.equal, 120);
    }
  }
}

TEST(DiffAlignment, HundredThousandCallsTakeSeconds) {
  std::mt19937 random(3);
  const FlowProgram a = test::RandomFlow(random, 50, 2000);
  std::vector<int> deleted;
  const FlowProgram b = test::EditFlow(a, random, 40, deleted);
  const TemporaryTrace left("diff-large-a");
  const TemporaryTrace right("diff-large-b");
  test::WriteFlow(a, left.path(), FlowValues::kNone);
  test::WriteFlow(b, right.path(), FlowValues::kNone);
  const auto begin = std::chrono::steady_clock::now();
  const diff::DiffReport report = DiffFiles(left.path(), right.path());
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  Recovery recovery;
  recovery.Take(a, b, deleted, report, true);
  Print("100,000 calls, no values", 40, recovery);
  printf("%.2f s\n", seconds);
  EXPECT_GE(recovery.recall(), 0.998);
  EXPECT_LT(seconds, 120);  // sanitizers and busy machines included
}

// x -> relu -> exp, with a content of relu's result.
void WriteChain(const std::string& path, std::vector<float> relu, std::vector<float> exp,
                std::vector<float> input = {1, -1, 2, -2}, const std::string& state = "complete") {
  TraceBuilder trace(path);
  const Tensor x = trace.NewTensor({4});
  const Tensor y = trace.NewTensor({4});
  const Tensor z = trace.NewTensor({4});
  trace.Call("aten::relu", {In("self", x)}, {Out("out", y)}).Before(x, input).After("out", relu);
  trace.Call("aten::exp", {In("self", y)}, {Out("out", z)}).After("out", exp);
  trace.Finish(state);
}

TEST(DiffCauses, TheFirstCallWhoseInputsAgreeIsTheOriginAndTheNextInherits) {
  const TemporaryTrace a("diff-chain-a");
  const TemporaryTrace b("diff-chain-b");
  WriteChain(a.path(), {1, 0, 2, 0}, {3, 1, 7, 1});
  WriteChain(b.path(), {1, 0, 2, 0.5}, {3, 1, 7, 1.6F});
  const diff::DiffReport report = DiffFiles(a.path(), b.path());
  ASSERT_EQ(report.first, 0);
  EXPECT_EQ(report.rows[0].cause, diff::DiffCause::kOrigin);
  EXPECT_EQ(report.rows[1].cause, diff::DiffCause::kInherited);
  EXPECT_EQ(report.rows[1].origin, 0);
  ASSERT_EQ(report.propagation.size(), 1u);
  EXPECT_EQ(report.propagation[0].inherited, 1);
}

TEST(DiffCauses, ADifferenceThatDiesOutIsSaidToAgreeAgain) {
  const TemporaryTrace a("diff-dies-a");
  const TemporaryTrace b("diff-dies-b");
  WriteChain(a.path(), {1, 0, 2, 0}, {3, 1, 7, 1});
  WriteChain(b.path(), {1, 0, 2, 0.5}, {3, 1, 7, 1});
  const diff::DiffReport report = DiffFiles(a.path(), b.path());
  ASSERT_EQ(report.propagation.size(), 1u);
  EXPECT_EQ(report.propagation[0].inherited, 0);
  EXPECT_EQ(report.propagation[0].first_absorbed, 1);
}

TEST(DiffCauses, OtherContentFromOutsideIsTheInput) {
  const TemporaryTrace a("diff-input-a");
  const TemporaryTrace b("diff-input-b");
  WriteChain(a.path(), {1, 0, 2, 0}, {3, 1, 7, 1});
  WriteChain(b.path(), {5, 0, 2, 0}, {148, 1, 7, 1}, {5, -1, 2, -2});
  const diff::DiffReport report = DiffFiles(a.path(), b.path());
  ASSERT_EQ(report.first, 0);
  EXPECT_EQ(report.rows[0].cause, diff::DiffCause::kInput);
  EXPECT_EQ(report.rows[1].cause, diff::DiffCause::kInherited);
}

TEST(DiffCauses, ADropoutWhoseInputDiffersInheritsTheDifference) {
  const TemporaryTrace a("diff-dropout-a");
  const TemporaryTrace b("diff-dropout-b");
  const auto write = [](const std::string& path, float third) {
    TraceBuilder trace(path);
    const Tensor x = trace.NewTensor({4});
    const Tensor y = trace.NewTensor({4});
    const Tensor z = trace.NewTensor({4});
    trace.Call("aten::relu", {In("self", x)}, {Out("out", y)});
    trace.Before(x, std::vector<float>{1, -1, 2, -2});
    trace.After("out", std::vector<float>{1, 0, third, 0});
    trace.Call("aten::native_dropout", {In("input", y), test::Real("p", 0.5)}, {Out("out0", z)});
    trace.After("out0", std::vector<float>{0, 0, 2 * third, 0});
    trace.Finish();
  };
  write(a.path(), 2);
  write(b.path(), 3);
  const diff::DiffReport report = DiffFiles(a.path(), b.path());
  EXPECT_EQ(report.rows[0].cause, diff::DiffCause::kOrigin);
  EXPECT_EQ(report.rows[1].cause, diff::DiffCause::kInherited);
  EXPECT_EQ(report.rows[1].origin, 0);
}

// A changed line is one place, in every step and in the backward pass as well.
TEST(DiffCauses, EveryPassOfOneLineIsOnePlace) {
  const TemporaryTrace a("diff-place-a");
  const TemporaryTrace b("diff-place-b");
  const auto write = [](const std::string& path, const std::string& op, float result) {
    TraceBuilder trace(path);
    for (const int line : {17, 17, 18}) {  // two passes of a line, and another line
      trace.Line("model.py", line);
      const Tensor x = trace.NewTensor({2});
      const Tensor y = trace.NewTensor({2});
      trace.Call(op, {In("self", x)}, {Out("out", y)});
      trace.Before(x, std::vector<float>{1, 2}).After("out", std::vector<float>{result, 2});
    }
    trace.Finish();
  };
  write(a.path(), "aten::silu", 1);
  write(b.path(), "aten::gelu", 3);
  const diff::DiffReport report = DiffFiles(a.path(), b.path());
  ASSERT_EQ(report.propagation.size(), 2u);
  EXPECT_EQ(report.propagation[0].rows, 2);
  EXPECT_EQ(report.propagation[1].rows, 1);
}

// A table of four rows, the last of which may then become a copy of the third.
void WriteTable(const std::string& path, bool copied, float third, float read) {
  TraceBuilder trace(path);
  const Tensor rows = trace.NewTensor({4});
  const Tensor table = trace.NewTensor({4});
  const Tensor out = trace.NewTensor({4});
  trace.Call("aten::relu", {In("self", rows)}, {Out("out", table)});
  trace.Before(rows, std::vector<float>{1, 2, third, 4});
  trace.After("out", std::vector<float>{1, 2, third, 4});
  if (copied) {
    trace.Call("aten::copy_", {test::Written("self", TraceBuilder::View(table, {1}, {1}, 3)),
                               In("src", TraceBuilder::View(table, {1}, {1}, 2))});
    trace.After("self", std::vector<float>{third});
  }
  trace.Call("aten::exp", {In("self", table)}, {Out("out", out)});
  trace.After("out", std::vector<float>{3, 7, 20, read});
  trace.Finish();
}

TEST(DiffCauses, ACopyIntoAPartOfWhatIsReadIsToBlameIfThePartDiffers) {
  const TemporaryTrace a("diff-part-a");
  const TemporaryTrace b("diff-part-b");
  WriteTable(a.path(), false, 3, 55);
  WriteTable(b.path(), true, 3, 20);
  const diff::DiffReport report = DiffFiles(a.path(), b.path());
  ASSERT_GE(report.first, 0);
  const diff::DiffRow& first = report.rows[static_cast<size_t>(report.first)];
  EXPECT_EQ(first.cause, diff::DiffCause::kStructural);
  EXPECT_EQ(first.relation, diff::DiffRelation::kInserted);
  EXPECT_EQ(report.rows.back().cause, diff::DiffCause::kInherited);
}

TEST(DiffCauses, ACopyThatLeavesThePartAsItWasIsNotToBlame) {
  const TemporaryTrace a("diff-same-part-a");
  const TemporaryTrace b("diff-same-part-b");
  WriteTable(a.path(), false, 4, 55);
  WriteTable(b.path(), true, 4, 54);
  const diff::DiffReport report = DiffFiles(a.path(), b.path());
  ASSERT_GE(report.first, 0);
  EXPECT_EQ(report.rows[static_cast<size_t>(report.first)].relation, diff::DiffRelation::kSame);
  EXPECT_EQ(report.rows.back().cause, diff::DiffCause::kOrigin);
}

TEST(DiffCauses, AStandardTakesSmallDifferencesForNone) {
  const TemporaryTrace a("diff-small-a");
  const TemporaryTrace b("diff-small-b");
  WriteChain(a.path(), {1, 0, 2, 0}, {3, 1, 7, 1});
  WriteChain(b.path(), {1, 0, 2, 0}, {3, 1, 7.0000005F, 1});
  EXPECT_EQ(DiffFiles(a.path(), b.path()).first, 1);
  diff::DiffOptions options;
  options.standard = "ascend";
  const diff::DiffReport report = DiffFiles(a.path(), b.path(), options);
  EXPECT_EQ(report.first, -1);
  EXPECT_EQ(report.rows[1].verdict, diff::DiffVerdict::kWithin);
}

TEST(DiffCauses, APartialTraceIsSaidToBeOne) {
  const TemporaryTrace a("diff-partial-a");
  const TemporaryTrace b("diff-partial-b");
  WriteChain(a.path(), {1, 0, 2, 0}, {3, 1, 7, 1});
  WriteChain(b.path(), {1, 0, 2, 0}, {3, 1, 7, 1}, {1, -1, 2, -2}, "partial");
  const diff::DiffReport report = DiffFiles(a.path(), b.path());
  EXPECT_EQ(report.first, -1);
  ASSERT_EQ(report.notes.size(), 1u);
  EXPECT_NE(report.notes[0].find("partial"), std::string::npos);
}

TEST(DiffCauses, ResultsInAnotherMemoryOrderAreEqual) {
  const TemporaryTrace a("diff-order-a");
  const TemporaryTrace b("diff-order-b");
  for (const bool columns : {false, true}) {
    TraceBuilder trace(columns ? b.path() : a.path());
    const Tensor x = trace.NewTensor({4});
    Tensor y = trace.NewTensor({2, 3});
    if (columns) y.layout.strides = {1, 2};
    trace.Call("aten::make", {In("self", x)}, {Out("out", y)})
        .After("out", columns ? std::vector<float>{1, 4, 2, 5, 3, 6}
                              : std::vector<float>{1, 2, 3, 4, 5, 6});
    trace.Finish();
  }
  const diff::DiffReport report = DiffFiles(a.path(), b.path());
  EXPECT_EQ(report.first, -1);
  EXPECT_EQ(report.counts.equal, 1);
}

// An ACL program: upload, two operators, download.
void WriteAcl(const std::string& path, bool inplace, float second) {
  test::AclTraceBuilder trace(path);
  const int64_t stream = trace.NewStream();
  const Tensor x = trace.Device({4});
  const Tensor y = trace.Device({4});
  trace.Upload(x, std::vector<float>{1, -2, 3, -4}, stream);
  trace.Op("aclnnRelu", stream, {In("self", x), Out("out", y)})
      .After("out", std::vector<float>{1, 0, 3, 0});
  if (inplace) {
    trace.Op("aclnnInplaceExp", stream, {test::Written("selfRef", y)})
        .After("selfRef", std::vector<float>{second, 1, 20, 1});
  } else {
    const Tensor z = trace.Device({4});
    trace.Op("aclnnExp", stream, {In("self", y), Out("out", z)})
        .After("out", std::vector<float>{second, 1, 20, 1});
  }
  trace.Synchronize(stream);
  trace.Finish();
}

TEST(DiffLevels, AclProgramsAreComparedByTheirOperators) {
  const TemporaryTrace a("diff-acl-a");
  const TemporaryTrace b("diff-acl-b");
  WriteAcl(a.path(), false, 3);
  WriteAcl(b.path(), true, 3);
  const diff::DiffReport same = DiffFiles(a.path(), b.path());
  EXPECT_EQ(same.first, -1);
  EXPECT_EQ(same.counts.inserted + same.counts.deleted, 0);
  WriteAcl(b.path(), true, 4);
  const diff::DiffReport report = DiffFiles(a.path(), b.path());
  ASSERT_GE(report.first, 0);
  EXPECT_EQ(report.rows[report.first].a_op, "aclnnExp");
  EXPECT_EQ(report.rows[report.first].b_op, "aclnnInplaceExp");
  EXPECT_EQ(report.rows[report.first].cause, diff::DiffCause::kOrigin);
}

// Twice three passes over so many rows of a weight, and the host reads what each gives: all eager,
// or the last three by one graph, which keeps the first number of rows. Steps are then found
// everywhere on one side, and on the other only where the graph is executed.
void WritePasses(const std::string& path, bool graph) {
  test::AclTraceBuilder trace(path);
  const int64_t stream = trace.NewStream();
  const Tensor weight = trace.Device({8, 4});
  const Tensor result = trace.Device({4});
  trace.Upload(weight, std::vector<float>(32, 0.5F), stream);
  const auto pass = [&](int64_t rows) {
    const Tensor read = test::AclTraceBuilder::View(weight, {rows, 4}, {4, 1}, 0);
    const Tensor middle = trace.Device({rows, 4});
    trace.Op("aclnnExp", stream, {In("self", read), Out("out", middle)});
    trace.Op("aclnnReduceSum", stream,
             {In("self", middle), test::Ints("dim", {0}), test::Bool("keepDims", false),
              Out("out", result)});
  };
  const auto read = [&](int64_t rows) {
    trace.Synchronize(stream);
    trace.Download(result, std::vector<float>(4, static_cast<float>(rows)));
  };
  for (int64_t rows = 6; rows < 9; ++rows) {
    pass(rows);
    read(rows);
  }
  int64_t model = 0;
  if (graph) {
    trace.BeginCapture(stream);
    pass(6);
    model = trace.EndCapture(stream);
  }
  for (int64_t rows = 6; rows < 9; ++rows) {
    if (graph) {
      trace.Execute(model, stream);
    } else {
      pass(rows);
    }
    read(graph ? 6 : rows);
  }
  trace.Finish();
}

TEST(DiffLevels, EagerPassesBeforeAGraphHaveTheirCounterpartsInAnEagerProgram) {
  const TemporaryTrace a("diff-passes-a");
  const TemporaryTrace b("diff-passes-b");
  WritePasses(a.path(), false);
  WritePasses(b.path(), true);
  const diff::DiffReport report = DiffFiles(a.path(), b.path());
  EXPECT_EQ(report.counts.inserted, 0);
  EXPECT_EQ(report.counts.deleted, 0);
  ASSERT_GE(report.first, 0);
  EXPECT_EQ(report.rows[report.first].change.find("shape of self [7, 4] -> [6, 4]"), 0U)
      << report.rows[report.first].change;
}

// Host memory lies elsewhere in each run: where bytes come from and go to is no difference, what
// they are is one.
TEST(DiffLevels, AddressesOfTheHostAreNoDifferenceAndTheBytesThereAreCompared) {
  const TemporaryTrace a("diff-host-a");
  const TemporaryTrace b("diff-host-b");
  const auto write = [](const std::string& path, int64_t address, const std::vector<float>& read) {
    test::AclTraceBuilder trace(path);
    const int64_t stream = trace.NewStream();
    const Tensor x = trace.Device({4});
    const Tensor y = trace.Device({4});
    trace.Copy(Out("dst", trace.Bytes(x)), test::Int("src", address), 16, 1, stream);
    trace.KeptBefore(2, std::vector<float>{1, -2, 3, -4});
    trace.Op("aclnnRelu", stream, {In("self", x), Out("out", y)});
    trace.Copy(test::Int("dst", address + 4096), In("src", trace.Bytes(y)), 16, 2, 0);
    trace.KeptAfter(0, read);
    trace.Finish();
  };
  write(a.path(), 0x55550000, {1, 0, 3, 0});
  write(b.path(), 0x7FFF0000, {1, 0, 3, 0});
  const diff::DiffReport same = DiffFiles(a.path(), b.path());
  EXPECT_EQ(same.first, -1);
  EXPECT_EQ(same.counts.changed, 0);
  EXPECT_EQ(same.counts.equal, 2);  // both copies; nobody kept what the operator gave
  write(b.path(), 0x7FFF0000, {1, 0, 2.5, 0});
  const diff::DiffReport other = DiffFiles(a.path(), b.path());
  ASSERT_GE(other.first, 0);
  EXPECT_EQ(other.rows[other.first].a_op, "aclrtMemcpy");
  EXPECT_EQ(other.rows[other.first].output, diff::kHostValue);
  EXPECT_EQ(other.rows[other.first].reason, "1 of 4 elements have other bits");
}

// A state that each step moves on, read by the host after each step. `moved`: so many steps ran
// before the first read.
TEST(DiffLevels, WhatTheHostReadsIsComparedInTurnThoughAllWorkHasACounterpart) {
  const TemporaryTrace a("diff-turn-a");
  const TemporaryTrace b("diff-turn-b");
  const auto write = [](const std::string& path, int moved) {
    test::AclTraceBuilder trace(path);
    const int64_t stream = trace.NewStream();
    const Tensor state = trace.Device({4});
    trace.Upload(state, std::vector<float>{1, 1, 1, 1}, stream);
    for (int step = 0; step < 4 + moved; ++step) {
      const float value = static_cast<float>(2 << step);
      const std::vector<float> content(4, value);
      trace
          .Op("aclnnInplaceMuls", stream,
              {test::Written("selfRef", state), test::Scalar("other", 2)})
          .After("selfRef", content);
      if (step >= moved) trace.Download(state, content);
    }
    trace.Finish();
  };
  write(a.path(), 0);
  write(b.path(), 0);
  EXPECT_EQ(DiffFiles(a.path(), b.path()).first, -1);
  write(b.path(), 2);
  const diff::DiffReport report = DiffFiles(a.path(), b.path());
  ASSERT_GE(report.first, 0);
  EXPECT_EQ(report.rows[report.first].a_op, "aclrtMemcpy");
  EXPECT_NE(report.rows[report.first].reason.find("read 1 of 4 on the host"), std::string::npos)
      << report.rows[report.first].reason;
}

TEST(DiffLevels, TracesOfTwoLevelsAreRefusedWithTheReason) {
  const TemporaryTrace a("diff-level-a");
  const TemporaryTrace b("diff-level-b");
  WriteChain(a.path(), {1, 0, 2, 0}, {3, 1, 7, 1});
  WriteAcl(b.path(), false, 3);
  try {
    DiffFiles(a.path(), b.path());
    FAIL() << "two levels were compared";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kTrace);
    EXPECT_NE(std::string(error.what()).find("record both at one level"), std::string::npos);
  }
}

}  // namespace
}  // namespace acltape::analyzer
