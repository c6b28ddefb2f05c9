// An operator that nobody knows is judged by the calls of the interface that were recorded in it.
#include "analyzer/lint/calls_inside.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "analyzer/calls/level.h"
#include "analyzer/lint/lint.h"
#include "tests/analyzer/acl_trace_builder.h"

namespace acltape::analyzer {
namespace {

using lint::CallsInside;
using test::AclTraceBuilder;
using test::In;
using test::Out;
using test::Tensor;

// Records aten::relu, then a wild operator in which `inside` issues calls, then aten::relu again.
// `messages` are what LINT-38 says of the leaves.
struct Judged {
  CallsInside inside{};
  std::vector<std::string> messages;
};
Judged Judge(const std::string& name,
             const std::function<void(AclTraceBuilder&, int64_t stream)>& inside) {
  const test::TemporaryTrace file("calls_inside_" + name);
  AclTraceBuilder trace(file.path());
  const int64_t stream = trace.NewStream();
  const Tensor input = trace.Device({4}), middle = trace.Device({4}), output = trace.Device({4});
  trace.Call("aten::relu", {In("self", input)}, {Out("", middle)});
  trace.Call("wild::op", {In("x", middle)}, {Out("", output)});
  const int64_t leaf = trace.last_call();
  trace.Leaf(leaf);
  inside(trace, stream);
  trace.Leaf(0);
  trace.Call("aten::relu", {In("self", output)}, {Out("", input)});
  trace.Finish();

  const storage::Reader reader(file.path());
  Judged judged;
  judged.inside = lint::FindCallsInside(reader, leaf);
  const Work leaves = LoadWork(reader, storage::Level::kAten);
  for (const lint::Finding& finding : lint::Lint(leaves, lint::LintOptions{}).findings) {
    if (finding.rule->id == "LINT-38") judged.messages.push_back(finding.message);
  }
  return judged;
}

TEST(CallsInside, AnUnknownOperatorThatOnlyLaunchesIsNotAccused) {
  const Judged judged = Judge("launches", [](AclTraceBuilder& trace, int64_t stream) {
    const Tensor own = trace.Device({4});
    trace.Op("aclnnRelu", stream, {In("self", own), Out("out", own)});
  });
  EXPECT_EQ(judged.inside, CallsInside::kNoWait);
  EXPECT_EQ(judged.messages, std::vector<std::string>{});
}

TEST(CallsInside, OneInWhichTheHostWaitsIs) {
  const Judged judged = Judge("waits", [](AclTraceBuilder& trace, int64_t stream) {
    const Tensor own = trace.Device({4});
    trace.Op("aclnnRelu", stream, {In("self", own), Out("out", own)});
    trace.Synchronize(stream);
  });
  EXPECT_EQ(judged.inside, CallsInside::kWait);
  ASSERT_EQ(judged.messages.size(), 1u);
  EXPECT_NE(judged.messages[0].find("the host waits for a stream in it"), std::string::npos)
      << judged.messages[0];
}

TEST(CallsInside, WithoutItsCallsLintSaysThatNobodyKnows) {
  const Judged judged = Judge("nothing", [](AclTraceBuilder&, int64_t) {});
  EXPECT_EQ(judged.inside, CallsInside::kNotRecorded);
  ASSERT_EQ(judged.messages.size(), 1u);
  EXPECT_NE(judged.messages[0].find("nobody knows what it does"), std::string::npos)
      << judged.messages[0];
}

}  // namespace
}  // namespace acltape::analyzer
