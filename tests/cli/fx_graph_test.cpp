#include "cli/tables/fx_graph.h"

#include <gtest/gtest.h>

#include <string>

#include "cli/choices/selection.h"
#include "meaning/recorded_values.h"
#include "tests/analyzer/trace_builder.h"

namespace acltape::cli {
namespace {

using test::In;
using test::Int;
using test::Out;
using test::TemporaryTrace;
using test::Tensor;
using test::TraceBuilder;
using test::Written;

constexpr char kAddSchema[] =
    "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor";
constexpr char kMmSchema[] = "aten::mm(Tensor self, Tensor mat2) -> Tensor";
constexpr char kAddInPlaceSchema[] =
    "aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)";

std::vector<FxNode> GraphOf(const std::string& path, const std::string& selection) {
  const storage::Reader reader(path);
  return BuildFxGraph(reader, SelectLeaves(reader, Selection::Parse(selection)));
}

std::string Line(const FxNode& node) {
  return node.opcode + " " + node.name + " " + node.target + " (" + node.args + ") {" +
         node.kwargs + "}";
}

class FxGraph : public testing::Test {
 protected:
  // mm(input, weight); add(mm, mm); add_(add, input): buffers 1, 2 (a parameter), 3, 4.
  void SetUp() override {
    TraceBuilder trace(path_);
    const Tensor input = trace.NewTensor({2, 2});
    Tensor weight = trace.NewTensor({2, 2});
    weight.layout.flags = meaning::kTensorParameter;
    const Tensor product = trace.NewTensor({2, 2}), sum = trace.NewTensor({2, 2});
    trace.Call(kMmSchema, {In("self", input), In("mat2", weight)}, {Out("out", product)});
    trace.Call(kAddSchema, {In("self", product), In("other", product), Int("alpha", 2)},
               {Out("out", sum)});
    trace.Call(kAddInPlaceSchema, {Written("self", sum), In("other", input), Int("alpha", 1)});
    trace.writer().AddStep({0, 1, 1, "range:step"});
    trace.writer().AddStep({1, 2, 3, "range:step"});
    trace.Finish();
  }

  const TemporaryTrace file_{"fx"};
  const std::string path_ = file_.path();
};

TEST_F(FxGraph, NamesProducersAndSplitsKeywordArguments) {
  const auto nodes = GraphOf(path_, "");
  ASSERT_EQ(nodes.size(), 6u);
  EXPECT_EQ(Line(nodes[0]), "placeholder input_1 buffer:1 () {}");
  EXPECT_EQ(Line(nodes[1]), "get_attr param_1 buffer:2 () {}");
  EXPECT_EQ(Line(nodes[2]), "call_function mm aten::mm (input_1, param_1) {}");
  EXPECT_EQ(Line(nodes[3]), "call_function add aten::add.Tensor (mm, mm) {alpha=2}");
  EXPECT_EQ(Line(nodes[4]), "call_function add_ aten::add_.Tensor (add, input_1) {alpha=1}");
  EXPECT_EQ(Line(nodes[5]), "output output output (add_) {}");
  EXPECT_EQ(nodes[2].result, "float32[2, 2]");
  EXPECT_EQ(nodes[2].call_id, 1);
}

TEST_F(FxGraph, WhatNoPickedLeafProducedBecomesAPlaceholder) {
  const auto nodes = GraphOf(path_, "step:1/op:aten::add_");
  ASSERT_EQ(nodes.size(), 4u);
  EXPECT_EQ(Line(nodes[0]), "placeholder input_1 buffer:4 () {}");
  EXPECT_EQ(Line(nodes[1]), "placeholder input_2 buffer:1 () {}");
  EXPECT_EQ(Line(nodes[2]), "call_function add_ aten::add_.Tensor (input_1, input_2) {alpha=1}");
}

TEST_F(FxGraph, SelectionPicksByStepOpAndNumber) {
  const storage::Reader reader(path_);
  const auto count = [&](const char* text) {
    return SelectLeaves(reader, Selection::Parse(text)).size();
  };
  EXPECT_EQ(count("step:0"), 1u);
  EXPECT_EQ(count("step:1"), 2u);
  EXPECT_EQ(count("step:0-1/op:aten::add*"), 2u);
  EXPECT_EQ(count("2-"), 2u);
  EXPECT_EQ(count("stream:0"), 0u);
}

TEST(FxGraphNames, RepeatedOpsAreNumbered) {
  const TemporaryTrace file("fx-names");
  TraceBuilder trace(file.path());
  Tensor last = trace.NewTensor({1});
  for (int i = 0; i < 3; ++i) {
    const Tensor next = trace.NewTensor({1});
    trace.Call(kAddSchema, {In("self", last), In("other", last), Int("alpha", 1)},
               {Out("out", next)});
    last = next;
  }
  trace.Finish();
  const auto nodes = GraphOf(file.path(), "");
  ASSERT_EQ(nodes.size(), 5u);
  EXPECT_EQ(nodes[1].name, "add");
  EXPECT_EQ(Line(nodes[3]), "call_function add_2 aten::add.Tensor (add_1, add_1) {alpha=1}");
  EXPECT_EQ(nodes[4].args, "add_2");
}

TEST(SelectLeaves, AskingForStepsThatTheTraceLacksIsAUsageError) {
  const TemporaryTrace file("fx-steps");
  TraceBuilder trace(file.path());
  trace.Call("aten::relu", {In("self", trace.NewTensor({1}))}, {Out("out", trace.NewTensor({1}))});
  trace.Finish();
  const storage::Reader reader(file.path());
  try {
    SelectLeaves(reader, Selection::Parse("step:0"));
    FAIL() << "steps were found in a trace without steps";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kUsage);
  }
}

}  // namespace
}  // namespace acltape::cli
