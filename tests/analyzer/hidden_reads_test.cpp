// A graph may read what no argument of a leaf names; traces of both levels tell it.
#include "analyzer/executions/hidden_reads.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "analyzer/calls/level.h"
#include "tests/analyzer/acl_trace_builder.h"

namespace acltape::analyzer {
namespace {

using test::AclTraceBuilder;
using test::In;
using test::Out;
using test::Tensor;

struct Case {
  const char* name;
  const char* op = "wild::attend";
  bool names_the_mask = false;   // the leaf has it among its arguments
  bool writes_the_mask = false;  // the graph does so before it reads it
  bool is_executed = true;
};

// A graph holds one leaf, whose call reads x, which the leaf names, and a mask. Returns what the
// graph reads besides: "none", "mask", or the number of such reads.
std::string HiddenReadOf(const Case& row) {
  const test::TemporaryTrace file(std::string("hidden_reads_") + row.name);
  int64_t mask_buffer = 0;
  {
    AclTraceBuilder trace(file.path());
    const int64_t stream = trace.NewStream();
    const Tensor block = trace.Device({64});
    const auto x = trace.NewInBlock(block, {4}, 0), y = trace.NewInBlock(block, {4}, 0x20);
    const auto mask = trace.NewInBlock(block, {4}, 0x40);
    mask_buffer = mask.tensor.buffer;
    trace.Call("aten::ones", {}, {Out("", mask.tensor)});
    trace.BeginCapture(stream);
    std::vector<test::Value> arguments = {In("x", x.tensor)};
    if (row.names_the_mask) arguments.push_back(In("mask", mask.tensor));
    trace.Call(row.op, arguments, {Out("", y.tensor)});
    trace.Leaf(trace.last_call());
    if (row.writes_the_mask) trace.Op("aclnnInplaceOne", stream, {Out("selfRef", mask.place)});
    trace.Op(
        "aclnnAdd", stream,
        {In("self", x.place), In("other", mask.place), test::Int("alpha", 1), Out("out", y.place)});
    trace.Leaf(0);
    const int64_t model = trace.EndCapture(stream);
    if (row.is_executed) trace.Execute(model, stream).Execute(model, stream);
    trace.Finish();
  }
  const storage::Reader of_leaves(file.path(), storage::TracePart{"", storage::Level::kAten});
  const storage::Reader of_calls(file.path(), storage::TracePart{"", storage::Level::kAcl});
  const Work leaves = LoadWork(of_leaves, storage::Level::kAten);
  const Work calls = LoadWork(of_calls, storage::Level::kAcl);
  const executions::OwnGraphs graphs = executions::FindOwnGraphs(leaves, calls);
  EXPECT_EQ(graphs.graphs.size(), 1u) << row.name;
  if (graphs.graphs.empty()) return "no graph";
  const auto& reads = graphs.graphs[0].footprint.hidden_reads;
  if (reads.empty()) return "none";
  if (reads.size() > 1) return std::to_string(reads.size());
  EXPECT_EQ(reads[0].first, 0) << row.name;
  EXPECT_EQ(reads[0].end, 16) << row.name;
  return reads[0].buffer == mask_buffer ? "mask" : "another";
}

TEST(HiddenReads, AreWhatTheCallsOfAnOperatorOfAnExtensionReadBesideItsArguments) {
  EXPECT_EQ(HiddenReadOf({"hidden"}), "mask");
}

TEST(HiddenReads, AreNoneWhereTheLeafNamesTheTensor) {
  EXPECT_EQ(HiddenReadOf({.name = "named", .names_the_mask = true}), "none");
}

TEST(HiddenReads, AreNoneWhereTheGraphWroteTheTensorItself) {
  EXPECT_EQ(HiddenReadOf({.name = "written", .writes_the_mask = true}), "none");
}

TEST(HiddenReads, AreNotLookedForInOperatorsOfPyTorchAndOfTheAdapter) {
  EXPECT_EQ(HiddenReadOf({.name = "aten", .op = "aten::add"}), "none");
  EXPECT_EQ(HiddenReadOf({.name = "npu", .op = "npu::npu_add"}), "none");
}

TEST(HiddenReads, OfGraphsThatAreNotExecutedAreNone) {
  EXPECT_EQ(HiddenReadOf({.name = "idle", .is_executed = false}), "none");
}

}  // namespace
}  // namespace acltape::analyzer
