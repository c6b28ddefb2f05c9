// An operator that nobody knows is judged by the calls of the interface that were recorded in it.
#include "analyzer/program/calls_inside.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "analyzer/calls/level.h"
#include "analyzer/lint/lint.h"
#include "analyzer/program/regions.h"
#include "tests/analyzer/acl_trace_builder.h"

namespace acltape::analyzer {
namespace {

using test::AclTraceBuilder;
using test::In;
using test::Out;
using test::Tensor;

// The memory of one wild operator, and the call of the interface in it.
struct Wild {
  AclTraceBuilder& trace;
  int64_t stream;
  Tensor block;
  int number;  // how many were recorded before
  AclTraceBuilder::InBlock x = trace.NewInBlock(block, {4}, 0);
  AclTraceBuilder::InBlock y = trace.NewInBlock(block, {4}, 0x20);
  AclTraceBuilder::InBlock other = trace.NewInBlock(block, {4}, 0x40);

  void Add(const Tensor& from, const Tensor& to, double alpha = 1) {
    trace.Op("aclnnAdds", stream, {In("self", from), test::Scalar("other", alpha), Out("out", to)});
  }
};

using Issue = std::function<void(Wild& wild)>;

// Records aten::relu, then wild::op twice, in which `inside` issues calls, then aten::relu.
// `messages` are what LINT-38 says of the leaves.
struct Judged {
  std::vector<CallsInside> inside;
  std::vector<std::string> reasons;
  std::vector<std::string> messages;
};
Judged Judge(const std::string& name, const Issue& inside) {
  const test::TemporaryTrace file("calls_inside_" + name);
  AclTraceBuilder trace(file.path());
  const int64_t stream = trace.NewStream();
  const Tensor input = trace.Device({4}), output = trace.Device({4});
  trace.Call("aten::relu", {In("self", input)}, {Out("", output)});
  for (const int number : {0, 1}) {
    Wild wild{trace, stream, trace.Device({64}), number};
    trace.Call("wild::op", {In("x", wild.x.tensor)}, {Out("", wild.y.tensor)});
    trace.Leaf(trace.last_call());
    inside(wild);
    trace.Leaf(0);
  }
  trace.Call("aten::relu", {In("self", output)}, {Out("", input)});
  trace.Finish();

  const storage::Reader reader(file.path());
  const Work leaves = LoadWork(reader, storage::Level::kAten);
  Judged judged;
  UnknownOperators operators(leaves);
  Barriers barriers(leaves);
  for (const size_t leaf : {1, 2}) {
    judged.inside.push_back(operators.Judge(leaf));
    judged.reasons.push_back(barriers.ReasonOf(leaf));
  }
  for (const lint::Finding& finding : lint::Lint(leaves, lint::LintOptions{}).findings) {
    if (finding.rule->id == "LINT-38") judged.messages.push_back(finding.message);
  }
  return judged;
}

struct Row {
  const char* name;
  Issue inside;
  CallsInside kind;
  const char* reason;
  const char* message;  // a part of the one of LINT-38; empty: it has none
};

TEST(CallsInside, TellIfAGraphCanRepeatAnUnknownOperator) {
  const Row rows[] = {
      {"operators",
       [](Wild& wild) {
         wild.Add(wild.x.place, wild.other.place);
         wild.Add(wild.other.place, wild.y.place);
       },
       CallsInside::kRepeatable, "", ""},
      {"nothing", [](Wild&) {}, CallsInside::kNotRecorded, kUnknownBarrier,
       "nobody knows what it does"},
      {"wait",
       [](Wild& wild) {
         wild.Add(wild.x.place, wild.y.place);
         wild.trace.Synchronize(wild.stream);
       },
       CallsInside::kWait, kWaitBarrier, "the host waits for a stream in it"},
      {"copy",
       [](Wild& wild) {
         wild.trace.Upload(wild.block, std::vector<float>(64), wild.stream);
         wild.Add(wild.x.place, wild.y.place);
       },
       CallsInside::kOtherWork, kOtherWorkBarrier, ""},
      {"hidden_input", [](Wild& wild) { wild.Add(wild.other.place, wild.y.place); },
       CallsInside::kHiddenInputs, kHiddenBarrier, ""},
      {"number", [](Wild& wild) { wild.Add(wild.x.place, wild.y.place, wild.number + 0.5); },
       CallsInside::kChanging, kChangingBarrier, ""},
      {"place",
       [](Wild& wild) {
         wild.Add(wild.x.place, wild.number == 0 ? wild.y.place : wild.other.place);
       },
       CallsInside::kChanging, kChangingBarrier, ""},
      {"once",
       [](Wild& wild) {
         if (wild.number == 0) wild.Add(wild.x.place, wild.y.place);
         wild.Add(wild.x.place, wild.y.place);
       },
       CallsInside::kChanging, kChangingBarrier, ""},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.name);
    const Judged judged = Judge(row.name, row.inside);
    EXPECT_EQ(judged.inside, (std::vector<CallsInside>{row.kind, row.kind}));
    EXPECT_EQ(judged.reasons, (std::vector<std::string>{row.reason, row.reason}));
    const bool accused = *row.message != '\0';
    EXPECT_EQ(judged.messages.empty(), !accused);
    for (const std::string& message : judged.messages) {
      EXPECT_NE(message.find(row.message), std::string::npos) << message;
    }
  }
}

}  // namespace
}  // namespace acltape::analyzer
