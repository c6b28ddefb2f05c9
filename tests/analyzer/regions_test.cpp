#include "analyzer/program/regions.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "analyzer/lint/lint.h"
#include "tests/analyzer/acl_trace_builder.h"

namespace acltape::analyzer {
namespace {

// 'k' kernels, '!' barriers, '|' a kernel that must start a region.
std::string Cut(const std::string& leaves) {
  std::string text;
  for (const Region& region : FindRegions(
           leaves.size(),
           [&](size_t i) { return leaves[i] == '!' ? std::string("host read") : std::string(); },
           [&](size_t i) { return leaves[i] == '|'; })) {
    text += region.captured ? "[" : "(";
    text += leaves.substr(region.first, region.end - region.first);
    text += region.captured ? "]" : ")";
    EXPECT_EQ(region.captured, region.reason.empty());
  }
  return text;
}

TEST(Regions, AreTheLongestRunsBetweenBarriers) {
  EXPECT_EQ(Cut("kkk!kk!"), "[kkk](!)[kk](!)");
  EXPECT_EQ(Cut("!!kk"), "(!)(!)[kk]");
  EXPECT_EQ(Cut("kkkk"), "[kkkk]");
  EXPECT_EQ(Cut(""), "");
}

TEST(Regions, StartWhereAnInputArrivesInTheMiddle) {
  EXPECT_EQ(Cut("kk|k"), "[kk][|k]");
  EXPECT_EQ(Cut("|kk!|k"), "[|kk](!)[|k]");
}

// The host waits for a collective of its own memory. HCCL puts one of devices into the graph.
TEST(Regions, EndAtACollectiveWhichOnlyOnTheHostRefusesACapture) {
  using test::In;
  for (const bool device : {true, false}) {
    SCOPED_TRACE(device);
    const test::TemporaryTrace file(device ? "collective_device" : "collective_host");
    test::AclTraceBuilder trace(file.path());
    const test::Tensor data = device ? trace.Device({4}) : trace.Pinned({4});
    trace.Call("aten::relu", {In("self", data)}, {test::Out("", data)});
    trace.Call("c10d::allreduce_", {test::List("tensors", {data})}, {});
    trace.Call("aten::relu", {In("self", data)}, {test::Out("", data)});
    trace.Finish();
    const storage::Reader reader(file.path());
    const Work leaves = LoadWork(reader, storage::Level::kAten);
    Barriers barriers(leaves);
    EXPECT_EQ(barriers.ReasonOf(0), "");
    EXPECT_EQ(barriers.ReasonOf(1), device ? kDeviceCollectiveBarrier : "collective");
    int accused = 0;
    for (const lint::Finding& finding : lint::Lint(leaves, lint::LintOptions{}).findings) {
      accused += finding.rule->id == "LINT-38" ? 1 : 0;
    }
    EXPECT_EQ(accused, device ? 0 : 1);
  }
}

}  // namespace
}  // namespace acltape::analyzer
