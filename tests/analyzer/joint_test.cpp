#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "analyzer/joint/joint_graph.h"
#include "analyzer/joint/max_flow.h"
#include "analyzer/joint/partition.h"
#include "tests/analyzer/trace_builder.h"

namespace acltape::analyzer {
namespace {

using namespace test;

TEST(FlowNetwork, FindsTheLeastCutOfRandomNetworks) {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    const size_t nodes = 2 + random() % 7;
    struct Edge {
      size_t from, to;
      int64_t capacity;
    };
    std::vector<Edge> edges;
    joint::FlowNetwork network(nodes);
    for (size_t i = random() % 20; i > 0; --i) {
      edges.push_back({random() % nodes, random() % nodes, static_cast<int64_t>(random() % 10)});
      network.AddEdge(edges.back().from, edges.back().to, edges.back().capacity);
    }
    const auto cut = [&](uint32_t source_side) {
      int64_t capacity = 0;
      for (const Edge& edge : edges) {
        const bool leaves = (source_side >> edge.from & 1) && !(source_side >> edge.to & 1);
        capacity += leaves ? edge.capacity : 0;
      }
      return capacity;
    };
    int64_t best = INT64_MAX;  // over all sets with node 0 and without node 1
    for (uint32_t set = 0; set < 1u << nodes; ++set) {
      if ((set & 1) && !(set & 2)) best = std::min(best, cut(set));
    }
    EXPECT_EQ(network.Maximise(0, 1), best) << "round " << round;
    const std::vector<bool> sink_side = network.SinkSide(1);
    uint32_t set = 0;
    for (size_t node = 0; node < nodes; ++node) set |= sink_side[node] ? 0 : 1u << node;
    EXPECT_EQ(cut(set), best) << "round " << round;
  }
}

TEST(FlowNetwork, WithoutAFiniteCutIsInfinite) {
  joint::FlowNetwork network(3);
  network.AddEdge(0, 1, joint::FlowNetwork::kInfinite);
  network.AddEdge(1, 2, joint::FlowNetwork::kInfinite);
  EXPECT_GE(network.Maximise(0, 2), joint::FlowNetwork::kInfinite);
}

// True when backward can have all that it reads from the kept values alone.
bool Suffices(const joint::JointGraph& graph, uint32_t kept) {
  std::vector<bool> there(graph.values.size());
  for (size_t v = 0; v < graph.values.size(); ++v) {
    const joint::JointValue& value = graph.values[v];
    there[v] = kept >> v & 1;
    if (there[v] || value.writer < 0 || !graph.calls[value.writer].recomputable) continue;
    const std::vector<int32_t>& reads = graph.calls[value.writer].reads;
    there[v] = std::all_of(reads.begin(), reads.end(), [&](int32_t read) { return there[read]; });
  }
  for (size_t v = 0; v < graph.values.size(); ++v) {
    if (graph.values[v].read_by_backward && !there[v]) return false;
  }
  return true;
}

TEST(JointPartition, MinCutKeepsTheLeastBytesOfAllSetsThatSuffice) {
  std::mt19937 random(23);
  int recomputed = 0;
  for (int round = 0; round < 300; ++round) {
    joint::JointGraph graph;
    for (size_t i = 1 + random() % 3; i > 0; --i) {
      graph.values.push_back({static_cast<int64_t>(random() % 3 * 8), -1, random() % 4 == 0});
    }
    for (size_t i = 1 + random() % 8; i > 0; --i) {
      joint::JointCall call{{}, static_cast<double>(random() % 100), random() % 4 != 0};
      for (size_t r = random() % 3; r > 0; --r) {
        call.reads.push_back(static_cast<int32_t>(random() % graph.values.size()));
      }
      const auto writer = static_cast<int32_t>(graph.calls.size());
      for (size_t w = 1 + random() % 2; w > 0 && graph.values.size() < 13; --w) {
        graph.values.push_back({static_cast<int64_t>(random() % 50), writer, random() % 3 == 0});
      }
      graph.calls.push_back(std::move(call));
    }
    int64_t best = INT64_MAX;
    for (uint32_t set = 0; set < 1u << graph.values.size(); ++set) {
      int64_t bytes = 0;
      for (size_t v = 0; v < graph.values.size(); ++v) {
        bytes += set >> v & 1 ? graph.values[v].bytes : 0;
      }
      if (bytes < best && Suffices(graph, set)) best = bytes;
    }
    const joint::Partition cut = joint::MinCut(graph);
    EXPECT_EQ(cut.bytes, best) << "round " << round;
    uint32_t kept = 0;
    for (const int32_t v : cut.kept) kept |= 1u << v;
    EXPECT_TRUE(Suffices(graph, kept)) << "round " << round;
    recomputed += static_cast<int>(cut.recomputed.size());

    const joint::Partition all = joint::KeepAll(graph);
    EXPECT_TRUE(all.recomputed.empty());
    EXPECT_GE(all.bytes, cut.bytes);
  }
  EXPECT_GT(recomputed, 100);
}

TEST(JointPartition, OfEqualCutsRecomputesLeast) {
  // x -> a -> b -> backward, all of the same size: b is kept.
  joint::JointGraph graph;
  graph.values = {{8, -1, false}, {8, 0, false}, {8, 1, true}};
  graph.calls = {{{0}, 5, true}, {{1}, 7, true}};
  const joint::Partition cut = joint::MinCut(graph);
  EXPECT_EQ(cut.kept, (std::vector<int32_t>{2}));
  EXPECT_TRUE(cut.recomputed.empty());
}

TEST(JointPartition, KeepsTheSmallInputOfACheapCall) {
  joint::JointGraph graph;
  graph.values = {{8, -1, false}, {800, 0, true}, {800, 1, true}};
  graph.calls = {{{0}, 5, true}, {{1}, 7, true}};
  const joint::Partition cut = joint::MinCut(graph);
  EXPECT_EQ(cut.kept, (std::vector<int32_t>{0}));
  EXPECT_EQ(cut.recomputed, (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(cut.recompute_ns, 12);
  EXPECT_EQ(joint::KeepAll(graph).bytes, 1600);
}

class TrainingTrace : public TraceBuilder {
 public:
  using TraceBuilder::TraceBuilder;
  void Forward(const std::string& name, const std::vector<Value>& arguments,
               const std::vector<Value>& results = {}) {
    Call(storage::Phase::kForward, name, arguments, results);
  }
  void Backward(const std::string& name, const std::vector<Value>& arguments,
                const std::vector<Value>& results = {}) {
    Call(storage::Phase::kBackward, name, arguments, results);
  }
};

std::vector<std::string> OperatorsOf(const Work& work, const joint::JointStep& joint,
                                     const std::vector<int32_t>& calls) {
  std::vector<std::string> names;
  for (const int32_t call : calls) names.push_back(work.op(joint.calls[call]).FullName());
  return names;
}

// h = x @ w; a = tanh(h); s = sigmoid(a): backward reads x, w, h, a and s.
TEST(JointGraph, LinksForwardToBackwardAndRecomputesWhatIsCheap) {
  TemporaryTrace file("joint");
  TrainingTrace trace(file.path());
  const Tensor x = trace.NewTensor({4, 8});
  const Tensor w = trace.NewTensor({8, 8});
  const Tensor h = trace.NewTensor({4, 8});
  const Tensor a = trace.NewTensor({4, 8});
  const Tensor s = trace.NewTensor({4, 8});
  const Tensor grad = trace.NewTensor({4, 8});
  const Tensor grad_w = trace.NewTensor({8, 8});
  trace.Forward("aten::mm", {In("self", x), In("mat2", w)}, {Out("out", h)});
  trace.Forward("aten::tanh", {In("self", h)}, {Out("out", a)});
  trace.Forward("aten::sigmoid", {In("self", a)}, {Out("out", s)});
  trace.Backward("aten::sigmoid_backward", {In("grad", s), In("out", s), In("input", a)},
                 {Out("result", grad)});
  trace.Backward("aten::mm", {In("self", x), In("mat2", grad), In("h", h)},
                 {Out("result", grad_w)});
  trace.Call(storage::Phase::kOptimizer, "aten::add_", {Written("self", w), In("other", grad_w)});
  trace.Finish();
  const storage::Reader reader(file.path());
  const Work work = LoadWork(reader);
  ASSERT_TRUE(joint::HasBackward(work, 0, work.size()));
  const joint::JointStep joint = joint::BuildJointStep(work, 0, work.size(), false);

  EXPECT_EQ(joint.calls.size(), 3u);
  EXPECT_EQ(joint.backward_calls, 2u);
  EXPECT_EQ(joint.links, 3u);  // sigmoid and tanh to sigmoid_backward, mm to mm
  EXPECT_EQ(joint.forward_ns, 1800);
  const joint::Partition all = joint::KeepAll(joint.graph);
  EXPECT_EQ(all.bytes, 3 * 128);  // h, a, s; x and w are there anyway
  const joint::Partition cut = joint::MinCut(joint.graph);
  EXPECT_EQ(cut.bytes, 128);  // h, as a product is not computed again
  EXPECT_EQ(OperatorsOf(work, joint, cut.recomputed),
            (std::vector<std::string>{"aten::tanh", "aten::sigmoid"}));
  EXPECT_EQ(cut.recompute_ns, 1200);

  const joint::Partition free =
      joint::MinCut(joint::BuildJointStep(work, 0, work.size(), true).graph);
  EXPECT_EQ(free.bytes, 0);
  EXPECT_EQ(free.recomputed.size(), 3u);
}

TEST(JointGraph, NeitherRecomputesRandomNumbersNorInPlaceResults) {
  TemporaryTrace file("joint-bars");
  TrainingTrace trace(file.path());
  const Tensor x = trace.NewTensor({16});
  const Tensor noise = trace.NewTensor({16});
  const Tensor y = trace.NewTensor({16});
  const Tensor grad = trace.NewTensor({16});
  trace.Forward("aten::bernoulli", {In("self", x)}, {Out("out", noise)});
  trace.Forward("aten::mul", {In("self", x), In("other", noise)}, {Out("out", y)});
  trace.Forward("aten::relu_", {Written("self", y)});
  trace.Backward("aten::mul", {In("self", y), In("other", noise)}, {Out("result", grad)});
  trace.Finish();
  const storage::Reader reader(file.path());
  const Work work = LoadWork(reader);
  const joint::JointStep joint = joint::BuildJointStep(work, 0, work.size(), true);
  EXPECT_EQ(joint.bars, (std::vector<joint::RecomputeBar>{joint::RecomputeBar::kRandom,
                                                          joint::RecomputeBar::kNone,
                                                          joint::RecomputeBar::kInPlace}));
  const joint::Partition cut = joint::MinCut(joint.graph);
  EXPECT_EQ(cut.bytes, 128);  // the noise and y after relu_
  EXPECT_TRUE(cut.recomputed.empty());
}

// An input that forward overwrites is gone: keeping what it was takes a copy.
TEST(JointGraph, CountsTheBytesOfAnOverwrittenInput) {
  TemporaryTrace file("joint-overwritten");
  TrainingTrace trace(file.path());
  const Tensor x = trace.NewTensor({2});
  const Tensor y = trace.NewTensor({64});
  const Tensor grad = trace.NewTensor({64});
  trace.Forward("aten::expand_copy", {In("self", x)}, {Out("out", y)});
  trace.Forward("aten::add_", {Written("self", x)});
  trace.Backward("aten::neg", {In("self", y)}, {Out("result", grad)});
  trace.Finish();
  const storage::Reader reader(file.path());
  const Work work = LoadWork(reader);
  const joint::JointStep joint = joint::BuildJointStep(work, 0, work.size(), false);
  EXPECT_EQ(joint::KeepAll(joint.graph).bytes, 256);
  const joint::Partition cut = joint::MinCut(joint.graph);
  EXPECT_EQ(cut.bytes, 8);
  EXPECT_EQ(cut.recomputed.size(), 1u);
}

TEST(JointGraph, OfAProgramWithoutBackwardIsNotAsked) {
  TemporaryTrace file("joint-forward");
  TrainingTrace trace(file.path());
  const Tensor x = trace.NewTensor({2});
  trace.Forward("aten::relu", {In("self", x)}, {Out("out", trace.NewTensor({2}))});
  trace.Finish();
  const storage::Reader reader(file.path());
  const Work work = LoadWork(reader);
  EXPECT_FALSE(joint::HasBackward(work, 0, work.size()));
}

}  // namespace
}  // namespace acltape::analyzer
