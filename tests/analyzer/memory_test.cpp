#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <set>

#include "analyzer/memory/arena.h"
#include "analyzer/memory/pool.h"
#include "analyzer/memory/reuse.h"
#include "analyzer/memory/stale_reads.h"
#include "tests/analyzer/acl_trace_builder.h"

namespace acltape::analyzer {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace): the words of the trace builder

TEST(Arena, TakesTheSmallestHoleThatIsLargeEnough) {
  // Two holes of 128 and 64 are free when the last block comes.
  std::vector<memory::ArenaBlock> blocks = {
      {100, 0, 1}, {10, 0, 9}, {60, 0, 1}, {10, 0, 9}, {50, 2, 9}};
  EXPECT_EQ(memory::PlaceBlocks(blocks, 64), 320);
  EXPECT_EQ(blocks[4].offset, 192);
  EXPECT_EQ(memory::PeakBytes(blocks, 64), 320);
}

TEST(Arena, OfRandomLivesNeverPutsTwoLiveBlocksOnOneByte) {
  std::mt19937 random(13);
  for (int round = 0; round < 200; ++round) {
    std::vector<memory::ArenaBlock> blocks(random() % 40);
    for (memory::ArenaBlock& block : blocks) {
      block.bytes = static_cast<int64_t>(random() % 300);
      block.first = static_cast<int64_t>(random() % 30);
      block.last = block.first + static_cast<int64_t>(random() % 10);
    }
    const int64_t arena = memory::PlaceBlocks(blocks, 16);
    const auto end = [](const memory::ArenaBlock& block) {
      return block.offset + (std::max<int64_t>(block.bytes, 1) + 15) / 16 * 16;
    };
    int64_t peak = 0;
    for (int64_t moment = 0; moment < 40; ++moment) {
      std::set<std::pair<int64_t, int64_t>> live;
      for (const memory::ArenaBlock& block : blocks) {
        if (block.first <= moment && moment <= block.last) live.emplace(block.offset, end(block));
      }
      int64_t before = 0;
      int64_t bytes = 0;
      for (const auto& [first, last] : live) {
        ASSERT_LE(before, first) << "round " << round << ", moment " << moment;
        before = last;
        bytes += last - first;
      }
      ASSERT_LE(before, arena);
      peak = std::max(peak, bytes);
    }
    EXPECT_EQ(memory::PeakBytes(blocks, 16), peak);
    EXPECT_GE(arena, peak);
  }
}

// A chain of `count` calls from x; its tensors are of 1000 bytes.
std::vector<Tensor> Chain(TraceBuilder& trace, Tensor x, int count) {
  std::vector<Tensor> made;
  for (int i = 0; i < count; ++i) {
    made.push_back(trace.NewTensor({250}));
    trace.Call("aten::relu", {In("self", x)}, {Out("out", made.back())});
    x = made.back();
  }
  return made;
}

std::vector<uint32_t> Calls(uint32_t first, uint32_t end) {
  std::vector<uint32_t> calls(end - first);
  std::iota(calls.begin(), calls.end(), first);
  return calls;
}

struct Loaded {
  explicit Loaded(TraceBuilder& trace, const TemporaryTrace& file) {
    trace.Finish();
    reader.emplace(file.path());
    work = LoadWork(*reader);
    lives.emplace(work);
  }
  std::optional<storage::Reader> reader;
  Work work;
  std::optional<memory::BufferLives> lives;
};

TEST(Pool, HoldsWhatTheGraphMakesAndKeepsItsOutput) {
  TemporaryTrace file("pool");
  TraceBuilder trace(file.path());
  const Tensor x = trace.NewTensor({250});
  const std::vector<Tensor> made = Chain(trace, x, 4);  // 0 to 3
  trace.Call("aten::relu_", {Written("self", x)});      // 4: the input is not in it
  trace.Call("aten::view", {In("self", made[0])},
             {Out("out", made[0])});  // 5: an early one lives on
  trace.Call("aten::abs", {In("self", made[3])}, {Out("out", trace.NewTensor({250}))});  // 6
  const Loaded loaded(trace, file);
  const std::vector<std::vector<uint32_t>> graphs = {Calls(0, 5)};
  const memory::PoolSet pools = memory::PlanPools(loaded.work, *loaded.lives, graphs);

  ASSERT_EQ(pools.graphs.size(), 1u);
  const memory::GraphPool& graph = pools.graphs[0];
  ASSERT_EQ(graph.blocks.size(), 4u);
  EXPECT_TRUE(graph.blocks[0].outlives);
  EXPECT_FALSE(graph.blocks[1].outlives);
  EXPECT_TRUE(graph.blocks[3].outlives);
  EXPECT_EQ(graph.output_bytes, 2000);
  EXPECT_EQ(graph.peak_bytes, 3 * 1024);  // the first, and two neighbours of the chain
  EXPECT_EQ(graph.pool_bytes, 3 * 1024);
  EXPECT_EQ(pools.shared_bytes, pools.separate_bytes);
}

TEST(Pool, OfTwoGraphsIsTheLargerOneButForWhatMustStay) {
  TemporaryTrace file("pools");
  TraceBuilder trace(file.path());
  const Tensor x = trace.NewTensor({250});
  const std::vector<Tensor> first = Chain(trace, x, 4);              // 0 to 3
  const std::vector<Tensor> second = Chain(trace, first.back(), 4);  // 4 to 7: reads the output
  trace.Call("aten::abs", {In("self", second.back())}, {Out("out", x)});  // 8: in another step
  const Loaded loaded(trace, file);
  const std::vector<std::vector<uint32_t>> graphs = {Calls(0, 4), Calls(4, 8)};
  const memory::PoolSet pools = memory::PlanPools(loaded.work, *loaded.lives, graphs);

  EXPECT_EQ(pools.graphs[0].pool_bytes, 2 * 1024);
  EXPECT_EQ(pools.graphs[1].pool_bytes, 2 * 1024);
  EXPECT_EQ(pools.separate_bytes, 4 * 1024);
  // The second graph's output for ever, beside two neighbours of a chain.
  EXPECT_EQ(pools.shared_bytes, 3 * 1024);
  EXPECT_EQ(pools.kept_bytes, 1000);
}

TEST(Pool, OfScalarsAndEmptyTensorsIsSmallAndOfNoCallsNothing) {
  TemporaryTrace file("pool-odd");
  TraceBuilder trace(file.path());
  const Tensor x = trace.NewTensor({});
  trace.Call("aten::abs", {In("self", x)}, {Out("out", trace.NewTensor({}))});
  trace.Call("aten::abs", {In("self", trace.NewTensor({0, 3}))},
             {Out("out", trace.NewTensor({0, 3}))});
  const Loaded loaded(trace, file);
  const std::vector<std::vector<uint32_t>> graphs = {Calls(0, 2), {}};
  const memory::PoolSet pools = memory::PlanPools(loaded.work, *loaded.lives, graphs);
  EXPECT_EQ(pools.graphs[0].pool_bytes, 512);
  EXPECT_EQ(pools.graphs[1].pool_bytes, 0);
}

// Steps of one graph of two calls and an eager call after it, which reads the result of `age`
// steps ago.
std::vector<memory::LateRead> LateReadsAtAge(int age) {
  TemporaryTrace file("late");
  TraceBuilder trace(file.path());
  const Tensor x = trace.NewTensor({4});
  std::vector<Tensor> results;
  std::vector<std::vector<uint32_t>> executions;
  for (int step = 0; step < 4; ++step) {
    const auto first = static_cast<uint32_t>(trace.last_call());
    results.push_back(Chain(trace, x, 2).back());
    executions.push_back(Calls(first, first + 2));
    const Tensor& read = results[static_cast<size_t>(std::max(step - age, 0))];
    trace.Call("aten::_local_scalar_dense", {In("self", read)},
               {Real("out", 0, storage::Direction::kOut)});
  }
  const Loaded loaded(trace, file);
  return memory::FindLateReads(loaded.work, *loaded.lives, executions);
}

TEST(LateReads, AreThoseAfterTheNextExecution) {
  EXPECT_TRUE(LateReadsAtAge(0).empty());
  const std::vector<memory::LateRead> late = LateReadsAtAge(1);
  ASSERT_EQ(late.size(), 3u);
  EXPECT_EQ(late[0].execution, 0u);
  EXPECT_EQ(late[0].writer, 1u);
  EXPECT_EQ(late[0].overwrite, 4u);
  EXPECT_EQ(late[0].reader, 5u);
}

TEST(LateReads, AreNoneWhereTheNextExecutionTakesTheResultAsItsInput) {
  for (const int age : {1, 2}) {
    TemporaryTrace file("late-carried");
    TraceBuilder trace(file.path());
    std::vector<Tensor> states = {trace.NewTensor({4}), trace.NewTensor({4})};
    std::vector<std::vector<uint32_t>> executions;
    for (int step = 0; step < 4; ++step) {
      const auto first = static_cast<uint32_t>(trace.last_call());
      states.push_back(Chain(trace, states[states.size() - static_cast<size_t>(age)], 1).back());
      executions.push_back(Calls(first, first + 1));
    }
    const Loaded loaded(trace, file);
    // A result of two executions ago has been overwritten by the one in between.
    EXPECT_EQ(memory::FindLateReads(loaded.work, *loaded.lives, executions).size(),
              age == 1 ? 0u : 2u);
  }
}

TEST(LateReads, AreNoneOfMemoryThatTheProgramUsesAgainItself) {
  TemporaryTrace file("late-own");
  TraceBuilder trace(file.path());
  const Tensor x = trace.NewTensor({4});
  const Tensor own = trace.NewTensor({4});
  std::vector<std::vector<uint32_t>> executions;
  for (uint32_t step = 0; step < 3; ++step) {
    trace.Call("aten::copy_", {Out("self", own), In("src", x)});
    trace.Call("aten::relu_", {Written("self", own)});
    executions.push_back({2 * step, 2 * step + 1});
  }
  const Loaded loaded(trace, file);
  EXPECT_TRUE(memory::FindLateReads(loaded.work, *loaded.lives, executions).empty());
}

// Two graphs whose results overlap or not.
std::vector<memory::SharedBytes> SharedBytesOf(bool overlap) {
  TemporaryTrace file("shared");
  AclTraceBuilder trace(file.path());
  const int64_t stream = trace.NewStream();
  const Tensor pool = trace.Device({64});
  const Tensor in = trace.Device({4});
  for (int graph = 0; graph < 2; ++graph) {
    const Tensor part = TraceBuilder::View(pool, {4}, {1}, graph == 0 ? 0 : (overlap ? 2 : 4));
    trace.BeginCapture(stream);
    trace.Op("aclnnRelu", stream, {In("self", in), Out("out", part)});
    trace.EndCapture(stream);
  }
  trace.Finish();
  const storage::Reader reader(file.path());
  return memory::FindSharedBytes(LoadWork(reader));
}

TEST(SharedBytes, OfTwoGraphsAreFound) {
  EXPECT_TRUE(SharedBytesOf(false).empty());
  const std::vector<memory::SharedBytes> shared = SharedBytesOf(true);
  ASSERT_EQ(shared.size(), 1u);
  EXPECT_EQ(shared[0].first_byte, 8);
  EXPECT_EQ(shared[0].end_byte, 16);
}

// Captures graphs, each by a list of operators, and executes them in the given order.
struct GraphOp {
  const char* op = "aclnnRelu";
  int from = 0;
  int to = 0;
};
std::vector<memory::StaleRead> StaleReads(const std::vector<std::vector<GraphOp>>& graphs,
                                          const std::vector<int>& order) {
  TemporaryTrace file("stale");
  AclTraceBuilder trace(file.path());
  const int64_t stream = trace.NewStream();
  std::vector<Tensor> tensors;
  for (int i = 0; i < 4; ++i) {
    tensors.push_back(trace.Device({4}));
    trace.Upload(tensors.back(), std::vector<float>(4, 1), stream);
  }
  const auto issue = [&](const GraphOp& op) {
    const Tensor &from = tensors[static_cast<size_t>(op.from)],
                 &to = tensors[static_cast<size_t>(op.to)];
    if (op.from == op.to) {
      trace.Op("aclnnInplaceRelu", stream, {Written("selfRef", from)});
    } else {
      trace.Op(op.op, stream, {In("self", from), Out("out", to)});
    }
  };
  std::vector<int64_t> models;
  for (const auto& graph : graphs) {
    trace.BeginCapture(stream);
    for (const GraphOp& op : graph) issue(op);
    models.push_back(trace.EndCapture(stream));
  }
  for (const int graph : order) {
    if (graph < 0) {
      issue({"aclnnNeg", 0, 1});  // eager work that writes tensor 1
    } else {
      trace.Execute(models[static_cast<size_t>(graph)], stream);
    }
  }
  trace.Finish();
  const storage::Reader reader(file.path());
  return memory::FindStaleReads(LoadWork(reader));
}

const std::vector<std::vector<GraphOp>> kMakerAndReader = {{{"aclnnRelu", 0, 1}},
                                                           {{"aclnnRelu", 1, 2}}};

TEST(StaleReads, AreExecutionsBeforeTheGraphThatMakesTheBytes) {
  EXPECT_TRUE(StaleReads(kMakerAndReader, {0, 1, 0, 1, 1}).empty());
  const auto stale = StaleReads(kMakerAndReader, {1, 0});
  ASSERT_EQ(stale.size(), 1u);
  EXPECT_EQ(stale[0].reader, 2);
  EXPECT_EQ(stale[0].maker, 1);
  EXPECT_EQ(stale[0].other, -1);
}

TEST(StaleReads, AreExecutionsAfterAnotherGraphHasOverwrittenTheBytes) {
  auto graphs = kMakerAndReader;
  graphs.push_back({{"aclnnNeg", 3, 1}});
  EXPECT_TRUE(StaleReads(graphs, {0, 1, 2, 0, 1}).empty());
  const auto stale = StaleReads(graphs, {0, 2, 1});
  ASSERT_EQ(stale.size(), 1u);
  EXPECT_GT(stale[0].other, 0);
}

TEST(StaleReads, AreNoneOfWhatEagerWorkSupplies) {
  EXPECT_TRUE(StaleReads(kMakerAndReader, {-1, 1, 0, -1, 1}).empty());
}

// A graph per batch size: both use tensor 2 for a temporary and tensor 3 for the result, and keep a
// state in tensor 1.
TEST(StaleReads, AreNoneOfGraphsThatShareTemporariesAndAState) {
  const std::vector<GraphOp> step = {{"", 1, 1}, {"aclnnRelu", 1, 2}, {"aclnnNeg", 2, 3}};
  EXPECT_TRUE(StaleReads({step, step}, {1, 0, 0, 1, 1, 0}).empty());
}

}  // namespace
}  // namespace acltape::analyzer
