// The page of a program that captures a graph itself and executes it.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "page/own_graphs.h"
#include "page/page.h"
#include "tests/analyzer/acl_trace_builder.h"
#include "tests/page/page_parts.h"

namespace acltape::page {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace): the words of the trace builder

using Floats = std::vector<float>;

// A step uploads an input, executes the graph of two operators, and downloads its result. A second
// stream is created, waited for, and has nothing to do.
class GraphsOfProgram : public ::testing::Test {
 protected:
  void SetUp() override {
    AclTraceBuilder trace(file_.path());
    stream_ = trace.NewStream();
    const int64_t idle = trace.NewStream();
    weight_ = trace.Device({4});
    input_ = trace.Device({4});
    const Tensor middle = trace.Device({4}), result = trace.Device({4});
    trace.BeginCapture(stream_);
    trace.Op("aclnnMul", stream_, {In("self", input_), In("other", weight_), Out("out", middle)});
    mul_ = trace.last_call();
    trace.Op("aclnnAdd", stream_, {In("self", middle), In("other", weight_), Out("out", result)});
    graph_ = trace.EndCapture(stream_);
    for (int step = 0; step < 3; ++step) {
      const int64_t first = trace.last_call() + 1;
      trace.Upload(input_, Floats{1, -2, 3, -4}, stream_);
      trace.Execute(graph_, stream_);
      trace.Download(result, Floats{1, 2, 3, 4}, stream_);
      trace.Synchronize(idle);
      trace.writer().AddStep({step, first, trace.last_call(), "range:step"});
    }
    trace.Finish();
  }

  nlohmann::json Part(const char* name) const {
    const storage::Reader reader(file_.path());
    std::ostringstream out;
    WritePage(reader, {}, out);
    return PartOf(out.str(), name);
  }

  TemporaryTrace file_{"page-graphs"};
  int64_t stream_ = 0, graph_ = 0, mul_ = 0;
  Tensor weight_, input_;
};

// Buffer, first byte, bytes, the first call that reads them, the name of its argument.
TEST_F(GraphsOfProgram, AnInputIsNamedWithTheCallThatReadsItFirst) {
  const nlohmann::json own = Part("own_graphs");
  ASSERT_EQ(own["graphs"].size(), 1u);
  EXPECT_EQ(own["graphs"][0]["graph"], graph_);
  EXPECT_EQ(own["graphs"][0]["executions"], 3);
  // Both operators read the weight, and the second one reads what the first one wrote.
  EXPECT_EQ(own["graphs"][0]["inputs"], (nlohmann::json{{input_.buffer, 0, 16, mul_, "self"},
                                                        {weight_.buffer, 0, 16, mul_, "other"}}));
}

TEST_F(GraphsOfProgram, CallsInsideAnExecutedGraphHaveNoTimeOfTheirOwn) {
  const nlohmann::json plan = Part("plan");
  std::map<std::string, bool> timed;
  for (const nlohmann::json& node : plan["nodes"]) {
    timed[node[1].get<std::string>()] = !node[4].is_null();
  }
  EXPECT_EQ(timed, (std::map<std::string, bool>{
                       {"aclrtMemcpyAsync", true}, {"aclnnMul", false}, {"aclnnAdd", false}}));
}

TEST_F(GraphsOfProgram, OnlyCallsThatGiveAStreamSomethingToDoAreItsWork) {
  const nlohmann::json signatures = Part("signatures");
  std::map<std::string, int> works;
  for (const nlohmann::json& op : signatures["ops"]) works[op[0].get<std::string>()] = op[2];
  for (const char* name : {"aclnnMul", "aclrtMemcpyAsync", "aclmdlRIExecuteAsync"}) {
    EXPECT_EQ(works[name], 1) << name;
  }
  for (const char* name : {"aclrtCreateStream", "aclrtSynchronizeStream", "aclmdlRICaptureBegin",
                           "aclmdlRICaptureEnd", "aclrtMalloc"}) {
    EXPECT_EQ(works[name], 0) << name;
  }
}

}  // namespace
}  // namespace acltape::page
