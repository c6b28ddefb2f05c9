#include "analyzer/graph/hazards.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "analyzer/calls/byte_set.h"
#include "analyzer/calls/overlap.h"
#include "analyzer/graph/order.h"
#include "tests/analyzer/acl_trace_builder.h"

namespace acltape::analyzer {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace): the words of the trace builder

std::vector<std::string> HazardsOf(TraceBuilder& trace, const TemporaryTrace& file) {
  trace.Finish();
  const storage::Reader reader(file.path());
  const Work work = LoadWork(reader);
  std::vector<std::string> found;
  for (const graph::Hazard& hazard : graph::FindHazards(work, 0, work.size())) {
    found.push_back(std::to_string(hazard.source) + ">" + std::to_string(hazard.target) + " " +
                    std::string(graph::HazardKindName(hazard.kind)));
  }
  return found;
}

using Edges = std::vector<std::string>;

TEST(Hazards, ColumnsOfOneMatrixDoNotConflict) {
  TemporaryTrace file("hazards-columns");
  TraceBuilder trace(file.path());
  const Tensor matrix = trace.NewTensor({4, 3});
  const auto column = [&](int64_t i) { return TraceBuilder::View(matrix, {4}, {3}, i); };
  const Tensor copy = trace.NewTensor({4});
  trace.Call("aten::zero_", {Out("self", matrix)});                      // 0
  trace.Call("aten::relu_", {Written("self", column(0))});               // 1 after 0
  trace.Call("aten::relu_", {Written("self", column(1))});               // 2 after 0, not after 1
  trace.Call("aten::abs", {In("self", column(1))}, {Out("out", copy)});  // 3 after 2
  trace.Call("aten::relu_", {Written("self", column(1))});               // 4 after 2 and 3
  trace.Call("aten::sum", {In("self", matrix)}, {Out("out", copy)});     // 5 after 0, 1, 4, 3
  EXPECT_EQ(HazardsOf(trace, file), (Edges{"0>1 RAW", "0>2 RAW", "2>3 RAW", "2>4 RAW", "3>4 WAR",
                                           "2>4 WAW", "1>5 RAW", "0>5 RAW", "4>5 RAW", "3>5 WAW"}));
}

TEST(Hazards, OfACallWithManyOperandsAreOnePerSourceAndBuffer) {
  TemporaryTrace file("hazards-many");
  TraceBuilder trace(file.path());
  std::vector<Tensor> tensors;
  std::vector<Tensor> twice;
  Edges expected;
  for (int i = 0; i < 100; ++i) {
    tensors.push_back(trace.NewTensor({4}));
    trace.Call("aten::zero_", {Out("self", tensors.back())});
    expected.push_back(std::to_string(i) + ">100 RAW");
    twice.push_back(TraceBuilder::View(tensors.back(), {2}, {1}, 0));
    twice.push_back(TraceBuilder::View(tensors.back(), {2}, {1}, 2));
  }
  trace.Call("aten::cat", {List("tensors", twice)}, {Out("out", trace.NewTensor({400}))});
  EXPECT_EQ(HazardsOf(trace, file), expected);
}

TEST(Hazards, ScalarsAndRepeatedElementsTouchTheirBytesOnly) {
  TemporaryTrace file("hazards-odd");
  TraceBuilder trace(file.path());
  const Tensor row = trace.NewTensor({4});
  const Tensor scalar = TraceBuilder::View(row, {}, {}, 2);
  const Tensor repeated = TraceBuilder::View(row, {5, 2}, {0, 1}, 0);
  const Tensor empty = TraceBuilder::View(row, {0}, {1}, 0);
  const Tensor out = trace.NewTensor({5, 2});
  trace.Call("aten::zero_", {Out("self", scalar)});                    // 0: byte 8 to 12
  trace.Call("aten::abs", {In("self", repeated)}, {Out("out", out)});  // 1: bytes 0 to 8
  trace.Call("aten::zero_", {Out("self", empty)});                     // 2: none
  EXPECT_EQ(HazardsOf(trace, file), Edges{});
}

TEST(Hazards, TheWorkspaceOfAnOperatorOrdersThoseThatShareIt) {
  TemporaryTrace file("hazards-workspace");
  AclTraceBuilder trace(file.path());
  const int64_t stream = trace.NewStream();
  const Tensor workspace = trace.Device({64});
  std::vector<int64_t> calls;
  for (int i = 0; i < 2; ++i) {
    const Tensor in = trace.Device({4});
    const Tensor out = trace.Device({4});
    trace.OpWithWorkspace("aclnnRelu", stream, {In("self", in), Out("out", out)}, workspace);
    calls.push_back(trace.last_call());
  }
  trace.Finish();
  const storage::Reader reader(file.path());
  const Work work = LoadWork(reader);
  const std::vector<graph::Hazard> hazards = graph::FindHazards(work, 0, work.size());
  ASSERT_EQ(hazards.size(), 1u);
  EXPECT_EQ(work.calls[hazards[0].source].call_id, calls[0]);
  EXPECT_EQ(work.calls[hazards[0].target].call_id, calls[1]);
  EXPECT_EQ(hazards[0].kind, graph::HazardKind::kWaw);
  EXPECT_EQ(hazards[0].buffer, workspace.buffer);
}

TEST(Hazards, MemoryThatAnAclOperatorOverwritesInPlaceIsWrittenAndNotRead) {
  TemporaryTrace file("hazards-overwrites");
  AclTraceBuilder trace(file.path());
  const int64_t stream = trace.NewStream();
  const Tensor matrix = trace.Device({4, 3});
  const Tensor column = TraceBuilder::View(matrix, {4}, {3}, 1);
  const Tensor other = trace.Device({4});
  trace.Op("aclnnInplaceZero", stream, {Written("selfRef", matrix)});
  trace.Op("aclnnInplaceCopy", stream, {Written("selfRef", column), In("src", other)});
  trace.Op("aclnnInplaceAdd", stream, {Written("selfRef", column), In("other", other)});
  // Calls 0 to 2 make the stream and the memory.
  EXPECT_EQ(HazardsOf(trace, file), (Edges{"3>4 WAW", "4>5 RAW", "4>5 WAW"}));
}

TEST(WorkOrder, FollowsStreamsEventsAndHostWaits) {
  TemporaryTrace file("order");
  AclTraceBuilder trace(file.path());
  const int64_t main = trace.NewStream();
  const int64_t side = trace.NewStream();
  const int64_t event = trace.NewEvent();
  const Tensor a = trace.Device({4});
  const Tensor b = trace.Device({4});
  std::vector<std::string> names;  // by call id
  const auto named = [&](const std::string& name) {
    names.resize(static_cast<size_t>(trace.last_call()) + 1);
    names.back() = name;
  };
  trace.Op("aclnnRelu", main, {In("self", a), Out("out", b)});
  named("relu");
  trace.Record(event, main);
  named("record");
  trace.Wait(side, event);
  named("wait");
  trace.Op("aclnnAbs", side, {In("self", b), Out("out", a)});
  named("abs");
  trace.Interface("aclrtStreamQuery", {Int("stream", main), Int("status", 1)}, main);  // not ended
  trace.Synchronize(side);
  named("sync");
  trace.Op("aclnnNeg", main, {In("self", a), Out("out", b)});
  named("neg");
  trace.Op("aclnnExp", main, {In("self", a), Out("out", b)});
  named("exp");
  trace.Interface("aclrtSynchronizeDevice", {});
  named("device");
  trace.Finish();
  const storage::Reader reader(file.path());
  const Work work = LoadWork(reader);
  std::vector<std::string> found;
  for (const graph::OrderEdge& edge : graph::FindOrder(work, 0, work.size())) {
    const auto name = [&](uint32_t call) { return names[work.calls[call].call_id]; };
    found.push_back(name(edge.source) + ">" + name(edge.target) + " " +
                    std::string(graph::OrderKindName(edge.kind)));
  }
  EXPECT_EQ(found, (Edges{"relu>record stream", "record>wait event", "wait>abs stream",
                          "abs>sync host", "record>neg stream", "sync>neg host", "neg>exp stream",
                          "exp>device host", "abs>device host"}));
}

TEST(WorkOrder, AfterACopyOfPageableMemoryTheHostHasWaited) {
  TemporaryTrace file("order");
  AclTraceBuilder trace(file.path());
  const int64_t main = trace.NewStream();
  const int64_t side = trace.NewStream();
  const Tensor a = trace.Device({4});
  const Tensor b = trace.Device({4});
  trace.Download(a, std::vector<float>{0, 0, 0, 0}, main);
  const int64_t copy = trace.last_call();
  trace.Op("aclnnRelu", side, {In("self", b), Out("out", a)});
  const int64_t relu = trace.last_call();
  trace.Finish();
  const storage::Reader reader(file.path());
  const Work work = LoadWork(reader);
  const std::vector<graph::OrderEdge> edges = graph::FindOrder(work, 0, work.size());
  ASSERT_EQ(edges.size(), 1u);
  EXPECT_EQ(work.calls[edges[0].source].call_id, copy);
  EXPECT_EQ(work.calls[edges[0].target].call_id, relu);
  EXPECT_EQ(edges[0].kind, graph::OrderKind::kHost);
}

TEST(WorkOrder, ANotifyLeadsFromItsRecordToItsWait) {
  TemporaryTrace file("order-notify");
  AclTraceBuilder trace(file.path());
  const int64_t main = trace.NewStream(), side = trace.NewStream();
  trace.Interface("aclrtRecordNotify", {Int("notify", 7), Int("stream", main)}, main);
  const int64_t record = trace.last_call();
  for (const int64_t notify : {7, 8}) {  // nobody recorded 8
    trace.Interface("aclrtWaitAndResetNotify",
                    {Int("notify", notify), Int("stream", side), Int("timeout", 0)}, side);
  }
  trace.Finish();
  const storage::Reader reader(file.path());
  const Work work = LoadWork(reader);
  const std::vector<graph::OrderEdge> edges = graph::FindOrder(work, 0, work.size());
  ASSERT_EQ(edges.size(), 2u);
  EXPECT_EQ(work.calls[edges[0].source].call_id, record);
  EXPECT_EQ(edges[0].kind, graph::OrderKind::kEvent);
  EXPECT_EQ(edges[1].kind, graph::OrderKind::kStream);
}

TEST(WorkOrder, OfACaptureIsItsOwn) {
  TemporaryTrace file("order-capture");
  AclTraceBuilder trace(file.path());
  const int64_t stream = trace.NewStream();
  const Tensor a = trace.Device({4});
  trace.Op("aclnnRelu", stream, {In("self", a), Out("out", a)});
  const int64_t eager = trace.last_call();
  trace.BeginCapture(stream);
  trace.Op("aclnnAbs", stream, {In("self", a), Out("out", a)});
  trace.Op("aclnnNeg", stream, {In("self", a), Out("out", a)});
  const int64_t captured = trace.last_call();
  trace.Execute(trace.EndCapture(stream), stream);
  const int64_t execute = trace.last_call();
  trace.Finish();
  const storage::Reader reader(file.path());
  const Work work = LoadWork(reader);
  const std::vector<graph::OrderEdge> edges = graph::FindOrder(work, 0, work.size());
  ASSERT_EQ(edges.size(), 2u);
  EXPECT_EQ(work.calls[edges[0].target].call_id, captured);
  EXPECT_EQ(work.calls[edges[1].source].call_id, eager);
  EXPECT_EQ(work.calls[edges[1].target].call_id, execute);
}

TEST(WorkOrder, OfAProgramOfPyTorchIsThatOfItsHostReads) {
  TemporaryTrace file("order-aten");
  TraceBuilder trace(file.path());
  const Tensor x = trace.NewTensor({});
  trace.Call("aten::relu_", {Written("self", x)});
  trace.Call("aten::_local_scalar_dense", {In("self", x)},
             {Real("out", 1, storage::Direction::kOut)});
  trace.Call("aten::view", {In("self", x)}, {Out("out", x)});
  trace.Call("aten::relu_", {Written("self", x)});
  trace.Call("aten::relu_", {Written("self", x)});
  trace.Finish();
  const storage::Reader reader(file.path());
  const std::vector<graph::OrderEdge> edges = graph::FindOrder(LoadWork(reader), 0, 5);
  ASSERT_EQ(edges.size(), 1u);
  EXPECT_EQ(edges[0].source, 1u);
  EXPECT_EQ(edges[0].target, 3u);
  EXPECT_EQ(edges[0].kind, graph::OrderKind::kHost);
}

storage::Layout RandomLayout(std::mt19937& random) {
  storage::Layout layout;
  layout.dtype = random() % 2 == 0 ? storage::DType::kInt8 : storage::DType::kInt16;
  layout.byte_offset = static_cast<int64_t>(random() % 6) * storage::DTypeBytes(layout.dtype);
  const size_t rank = random() % 4;
  for (size_t d = 0; d < rank; ++d) {
    layout.shape.push_back(static_cast<int64_t>(random() % 4));
    if (random() % 3 != 0) layout.shape.back() = std::max<int64_t>(layout.shape.back(), 1);
    layout.strides.push_back(static_cast<int64_t>(random() % 8));
  }
  return layout;
}

std::set<int64_t> ViewBytes(const storage::Layout& layout) {
  ByteSet set;
  AddElements(layout, set);
  std::set<int64_t> bytes;
  for (const ByteRange& range : set.Within(0, 1000)) {
    for (int64_t byte = range.first; byte < range.end; ++byte) bytes.insert(byte);
  }
  return bytes;
}

TEST(Overlap, OfRandomViewsIsThatOfTheirBytes) {
  std::mt19937 random(3);
  int shared = 0;
  for (int round = 0; round < 20000; ++round) {
    const storage::Layout a = RandomLayout(random);
    const storage::Layout b = RandomLayout(random);
    const std::set<int64_t> x = ViewBytes(a);
    const std::set<int64_t> y = ViewBytes(b);
    const bool expected =
        std::any_of(x.begin(), x.end(), [&](int64_t call) { return y.contains(call); });
    ASSERT_EQ(ShareBytes(PatternOf(a), PatternOf(b)), expected)
        << "offset " << a.byte_offset << " and " << b.byte_offset << ", round " << round;
    shared += expected ? 1 : 0;
  }
  EXPECT_GT(shared, 2000);
  EXPECT_LT(shared, 18000);
}

TEST(Overlap, OfTwoLargeInterleavedMatricesIsFoundQuickly) {
  storage::Layout even;
  even.dtype = storage::DType::kFloat32;
  even.shape = {10000, 5000};
  even.strides = {10000, 2};
  storage::Layout odd = even;
  odd.byte_offset = 4;
  // Runs of one element each are beyond the exact test, which then says yes.
  EXPECT_TRUE(ShareBytes(PatternOf(even), PatternOf(odd)));
  even.strides = odd.strides = {10000, 1};  // left and right half of the columns
  odd.byte_offset = 20000;
  EXPECT_FALSE(ShareBytes(PatternOf(even), PatternOf(odd)));
  odd.byte_offset = 19996;
  EXPECT_TRUE(ShareBytes(PatternOf(even), PatternOf(odd)));
}

TEST(Hazards, OfRandomProgramsOrderAllConflictsAndNothingElse) {
  std::mt19937 random(5);
  for (int round = 0; round < 60; ++round) {
    TemporaryTrace file("hazards-random");
    TraceBuilder trace(file.path());
    const Tensor whole = trace.NewTensor({64}, storage::DType::kInt8);
    const Tensor out = trace.NewTensor({1}, storage::DType::kInt8);
    struct Made {
      std::set<int64_t> reads, writes;
    };
    std::vector<Made> made;
    for (int call = 0; call < 40; ++call) {
      Tensor view = whole;
      view.layout = RandomLayout(random);
      const std::set<int64_t> bytes = ViewBytes(view.layout);
      switch (random() % 3) {
        case 0:
          trace.Call("aten::zero_", {Out("self", view)});
          made.push_back({{}, bytes});
          break;
        case 1:
          trace.Call("aten::relu_", {Written("self", view)});
          made.push_back({bytes, bytes});
          break;
        default:
          trace.Call("aten::_local_scalar_dense", {In("self", view)},
                     {Real("out", 0, storage::Direction::kOut)});
          made.push_back({bytes, {}});
      }
    }
    trace.Finish();
    const storage::Reader reader(file.path());
    const Work work = LoadWork(reader);
    ASSERT_EQ(work.size(), made.size());
    const auto meet = [](const std::set<int64_t>& a, const std::set<int64_t>& b) {
      return std::any_of(a.begin(), a.end(), [&](int64_t byte) { return b.contains(byte); });
    };
    const auto conflict = [&](size_t a, size_t b) {
      return meet(made[a].writes, made[b].reads) || meet(made[a].reads, made[b].writes) ||
             meet(made[a].writes, made[b].writes);
    };
    std::vector<std::set<size_t>> before(made.size());  // all that an edge path orders before
    for (const graph::Hazard& hazard : graph::FindHazards(work, 0, work.size())) {
      ASSERT_TRUE(conflict(hazard.source, hazard.target))
          << "round " << round << ": " << hazard.source << " > " << hazard.target;
      before[hazard.target].insert(hazard.source);
      before[hazard.target].insert(before[hazard.source].begin(), before[hazard.source].end());
    }
    for (size_t b = 0; b < made.size(); ++b) {
      for (size_t a = 0; a < b; ++a) {
        if (conflict(a, b)) {
          ASSERT_TRUE(before[b].contains(a)) << "round " << round << ": " << a << " > " << b;
        }
      }
    }
  }
}

}  // namespace
}  // namespace acltape::analyzer
