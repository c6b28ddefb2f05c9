#include "analyzer/calls/work.h"

#include <gtest/gtest.h>

#include "analyzer/graph/hazards.h"
#include "analyzer/program/program.h"
#include "tests/analyzer/trace_builder.h"

namespace acltape::analyzer {
namespace {

using namespace test;

TEST(Work, HoldsTheLeavesOfAProgramWithTheirAccesses) {
  TemporaryTrace file("work");
  TraceBuilder trace(file.path());
  const Tensor x = trace.NewTensor({2, 3});
  const Tensor y = trace.NewTensor({2, 3});
  trace.Call("aten::relu", {In("self", x)}, {Out("out", y)});
  trace.Call("aten::relu_", {Written("self", y)}, {});
  trace.Finish();
  const storage::Reader reader(file.path());
  const Work work = LoadWork(reader);

  ASSERT_EQ(work.size(), 2u);
  EXPECT_EQ(work.dialect, Dialect::kAten);
  EXPECT_EQ(work.Describe(0), "call " + std::to_string(work.calls[0].call_id) + " aten::relu");
  std::vector<std::string> seen;
  for (size_t call = 0; call < work.size(); ++call) {
    work.VisitAccesses(call, [&](const ByteAccess& access) {
      seen.push_back((access.write ? "W" : "R") +
                     std::string(access.buffer == x.buffer ? "x" : "y") +
                     std::to_string(access.first) + "-" + std::to_string(access.end));
    });
  }
  EXPECT_EQ(seen, (std::vector<std::string>{"Rx0-24", "Wy0-24", "Ry0-24", "Wy0-24"}));
}

TEST(Work, TellsAViewFromAKernelOfTheSameSignatureByItsBuffers) {
  TemporaryTrace file("work-view");
  TraceBuilder trace(file.path());
  const Tensor x = trace.NewTensor({4});
  const Tensor copy = trace.NewTensor({4});
  trace.Call("aten::contiguous", {In("self", x)}, {Out("out", x)});
  trace.Call("aten::contiguous", {In("self", x)}, {Out("out", copy)});
  trace.Finish();
  const storage::Reader reader(file.path());
  const Work work = LoadWork(reader);

  EXPECT_EQ(work.calls[0].step, -1);
  EXPECT_EQ(work.form(0).kind, LeafKind::kView);
  EXPECT_EQ(work.form(1).kind, LeafKind::kKernel);
}

TEST(Hazards, OrderReadsAndWritesOfTheSameBytesOnly) {
  TemporaryTrace file("hazards");
  TraceBuilder trace(file.path());
  const Tensor whole = trace.NewTensor({8});
  Tensor low = whole;
  low.layout.shape = {4};
  low.layout.strides = {1};
  Tensor high = low;
  high.layout.byte_offset = 16;
  const Tensor a = trace.NewTensor({4});
  const Tensor b = trace.NewTensor({8});
  trace.Call("aten::relu_", {Written("self", low)}, {});          // 0 writes 0..16
  trace.Call("aten::relu_", {Written("self", high)}, {});         // 1 writes 16..32
  trace.Call("aten::abs", {In("self", high)}, {Out("out", a)});   // 2 RAW on 1
  trace.Call("aten::abs", {In("self", whole)}, {Out("out", b)});  // 3 RAW on 0 and 1
  trace.Call("aten::relu_", {Written("self", low)}, {});          // 4 RAW on 0, WAR on 3
  trace.Finish();
  const storage::Reader reader(file.path());
  const Work work = LoadWork(reader);

  std::vector<std::string> found;
  for (const graph::Hazard& hazard : graph::FindHazards(work, 0, work.size())) {
    found.push_back(std::to_string(hazard.source) + ">" + std::to_string(hazard.target) + " " +
                    std::string(graph::HazardKindName(hazard.kind)) + " " +
                    std::to_string(hazard.first_byte) + "-" + std::to_string(hazard.end_byte));
  }
  EXPECT_EQ(found, (std::vector<std::string>{"1>2 RAW 16-32", "0>3 RAW 0-16", "1>3 RAW 16-32",
                                             "0>4 RAW 0-16", "3>4 WAR 0-16"}));
}

}  // namespace
}  // namespace acltape::analyzer
