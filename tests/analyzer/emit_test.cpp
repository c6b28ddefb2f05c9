#include "analyzer/emit/emit.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "analyzer/emit/planned_step.h"
#include "storage/database.h"
#include "storage/error.h"
#include "tests/analyzer/trace_builder.h"

namespace acltape::analyzer {
namespace {

using namespace test;

// x -> mm -> relu, x.t() -> tanh, a host read: calls 1 to 5.
void WriteProgram(const std::string& path) {
  TraceBuilder trace(path);
  const Tensor x = trace.NewTensor({2, 2});
  const Tensor a = trace.NewTensor({2, 2});
  const Tensor b = trace.NewTensor({2, 2});
  const Tensor c = trace.NewTensor({2, 2});
  trace.Call("aten::mm", {In("self", x), In("mat2", x)}, {Out("out", a)});
  trace.Call("aten::relu", {In("self", a)}, {Out("out", b)});
  trace.Call("aten::t", {In("self", x)}, {Out("out", TraceBuilder::View(x, {2, 2}, {1, 2}))});
  trace.Call("aten::tanh", {In("self", TraceBuilder::View(x, {2, 2}, {1, 2}))}, {Out("out", c)});
  trace.Call("aten::item", {In("self", b)}, {Real("out", 1, storage::Direction::kOut)});
  trace.Finish();
}

// tanh is issued first, on a stream of its own; relu waits for it.
plan::Plan TwoStreams() {
  plan::Plan plan;
  plan.trace_calls = 5;
  plan.first_call = 1;
  plan.last_call = 5;
  plan.streams = 2;
  plan.regions = {
      {0, true, 1, 4, "ends \"here\"", 0, {{4, 1, ""}, {1, 0, ""}, {2, 0, ""}}, {{4, 2, 7}}},
      {1, false, 5, 5, "host read", 0, {}, {}}};
  return plan;
}

TEST(ResolvePlan, SaysOfEachActiveCallWhatThePlanDoesWithIt) {
  TemporaryTrace file("emit");
  WriteProgram(file.path());
  const storage::Reader reader(file.path());
  const Work work = LoadWork(reader);
  const std::vector<emit::PlannedCall> calls = emit::ResolvePlan(TwoStreams(), work);
  ASSERT_EQ(calls.size(), 4u);  // the view is none
  std::vector<std::string> rows;
  for (const emit::PlannedCall& call : calls) {
    rows.push_back(std::to_string(work.calls[call.call].call_id) + " region " +
                   std::to_string(call.region) + " stream " + std::to_string(call.stream) +
                   " issue " + std::to_string(call.issue) + (call.recorded ? " recorded" : "") +
                   (call.waits.empty() ? "" : " waits"));
  }
  EXPECT_EQ(rows, (std::vector<std::string>{
                      "1 region 0 stream 0 issue 1", "2 region 0 stream 0 issue 2 waits",
                      "4 region 0 stream 1 issue 0 recorded", "5 region 1 stream 0 issue 0"}));
  EXPECT_EQ(emit::ResultText(work, calls[2].call), "float32[2, 2]");
}

TEST(Emit, QuotesWhatReasonsHoldForGraphviz) {
  TemporaryTrace file("emit-dot");
  WriteProgram(file.path());
  const storage::Reader reader(file.path());
  const Work work = LoadWork(reader);
  const std::string dot = emit::DotText(TwoStreams(), work);
  EXPECT_NE(dot.find("label=\"region 0, captured: ends \\\"here\\\"\";"), std::string::npos) << dot;
  EXPECT_NE(dot.find("c4 [label=\"4 aten::tanh\\nfloat32[2, 2]\""), std::string::npos) << dot;
  EXPECT_NE(dot.find("c4 -> c2 [style=dashed"), std::string::npos) << dot;
  EXPECT_EQ(dot.find("c3 "), std::string::npos) << dot;
}

TEST(Emit, GivesTheTorchairPassTargetsStreamsAndOrder) {
  TemporaryTrace file("emit-torchair");
  WriteProgram(file.path());
  const storage::Reader reader(file.path());
  const Work work = LoadWork(reader);
  const std::string pass = emit::TorchairPass(TwoStreams(), work);
  for (const char* line :
       {"Call(1, \"aten.mm.default\", 0, 1),", "Call(4, \"aten.tanh.default\", 1, 0),",
        "Wait(4, 2),", "RECORDED_VIEWS = set([\"t\"])", "def apply_plan(gm"}) {
    EXPECT_NE(pass.find(line), std::string::npos) << line << "\n" << pass.substr(0, 1500);
  }
  EXPECT_EQ(pass.find("aten.item"), std::string::npos);

  plan::Plan eager = TwoStreams();
  eager.regions = {{0, false, 1, 5, "by hand", 0, {}, {}}};
  EXPECT_THROW(emit::TorchairPass(eager, work), Error);
}

// The pass is imported into a program: a name in a trace must not be code there.
TEST(Emit, ANameInATraceIsNoCodeInTheTorchairPass) {
  TemporaryTrace file("emit-code");
  WriteProgram(file.path());
  {
    storage::Database database(file.path(), SQLITE_OPEN_READWRITE);
    database.Execute("UPDATE op SET overload = '\", evil(), \"' WHERE name = 'aten::mm'");
  }
  const storage::Reader reader(file.path());
  const Work work = LoadWork(reader);
  const std::string pass = emit::TorchairPass(TwoStreams(), work);
  EXPECT_NE(pass.find(R"(Call(1, "aten.mm.\", evil(), \"", 0, 1),)"), std::string::npos) << pass;
}

TEST(Emit, ResolvedJsonHoldsWhatIsPredicted) {
  TemporaryTrace file("emit-json");
  WriteProgram(file.path());
  const storage::Reader reader(file.path());
  const Work work = LoadWork(reader);
  plan::Plan plan = TwoStreams();
  plan.predicted.captured_ns = 1250;
  plan.copies = {{1, "self", 16}};
  const auto json = nlohmann::json::parse(emit::ResolvedJson(plan, work));
  EXPECT_EQ(json["predicted"]["captured_ns"], 1250);
  EXPECT_EQ(json["copies"][0]["bytes"], 16);
  EXPECT_EQ(json["regions"][0]["recorded_ns"], 3 * 600);
  EXPECT_EQ(json["regions"][0]["calls"][1]["waits"][0]["record_after"], 4);
  EXPECT_EQ(json["regions"][1]["kind"], "eager");
}

}  // namespace
}  // namespace acltape::analyzer
