#include "analyzer/prediction/prediction.h"

#include <gtest/gtest.h>

#include "analyzer/prediction/resource.h"
#include "storage/database.h"
#include "storage/results.h"
#include "tests/analyzer/acl_trace_builder.h"

namespace acltape::analyzer {
namespace {

using namespace test;

constexpr int64_t kDeep = 2048;

TEST(ResourceOf, GoesByTheTableAndTakesTheRestAsVectorWork) {
  EXPECT_EQ(prediction::ResourceOf("aten::addmm.out"), streams::Resource::kCube);
  EXPECT_EQ(prediction::ResourceOf("aten::mm"), streams::Resource::kCube);
  EXPECT_EQ(prediction::ResourceOf("aten::convolution_backward"), streams::Resource::kCube);
  EXPECT_EQ(prediction::ResourceOf("aclnnMatmulCompress"), streams::Resource::kCube);
  EXPECT_EQ(prediction::ResourceOf("aclrtMemcpyAsync"), streams::Resource::kCopy);
  EXPECT_EQ(prediction::ResourceOf("c10d::allreduce_"), streams::Resource::kCommunication);
  // A form in place keeps the part of the device busy that the other form does.
  EXPECT_EQ(prediction::ResourceOf("aten::addmm_"), streams::Resource::kCube);
  EXPECT_EQ(prediction::ResourceOf("aclnnInplaceAddmm"), streams::Resource::kCube);
  EXPECT_EQ(prediction::ResourceOf("aclnnConvDepthwise2d"), streams::Resource::kCube);
  EXPECT_EQ(prediction::ResourceOf("npu::npu_fusion_attention_v3"), streams::Resource::kCube);
  EXPECT_EQ(prediction::ResourceOf("_c10d_functional_autograd::all_gather_into_tensor"),
            streams::Resource::kCommunication);
  EXPECT_EQ(prediction::ResourceOf("HcclAllReduce"), streams::Resource::kCommunication);
  EXPECT_EQ(prediction::ResourceOf("aten::add.Tensor"), streams::Resource::kVector);
  EXPECT_EQ(prediction::ResourceOf("aclnnMmm"), streams::Resource::kVector);
  EXPECT_EQ(prediction::ResourceOf(""), streams::Resource::kVector);
}

TEST(RunQueue, LetsTheDeviceWaitForASlowHost) {
  const prediction::QueueTask tasks[] = {{10, 1}, {10, 1}, {10, 1}};
  const prediction::StepTimes times = prediction::RunQueue(tasks, kDeep, 0);
  EXPECT_EQ(times.latency_ns, 31);
  EXPECT_EQ(times.host_ns, 30);
  EXPECT_EQ(times.device_ns, 3);
  EXPECT_EQ(times.wait_ns, 0);
  EXPECT_TRUE(times.host_bound());
}

TEST(RunQueue, HidesTheTimeOfTheHostUnderASlowDevice) {
  const prediction::QueueTask tasks[] = {{1, 10}, {1, 10}, {1, 10}};
  const prediction::StepTimes times = prediction::RunQueue(tasks, kDeep, 0);
  EXPECT_EQ(times.latency_ns, 31);
  EXPECT_FALSE(times.host_bound());
}

TEST(RunQueue, StopsTheHostAtReads) {
  // Issued at 1, executed until 11, known to the host at 13; the last one from 14 to 24, known
  // at 26.
  const prediction::QueueTask tasks[] = {{1, 10, true}, {1, 10}};
  const prediction::StepTimes times = prediction::RunQueue(tasks, kDeep, 2);
  EXPECT_EQ(times.wait_ns, 12);
  EXPECT_EQ(times.latency_ns, 26);
}

TEST(RunQueue, StopsTheHostWhereTheQueueIsFull) {
  const std::vector<prediction::QueueTask> tasks(4, {1, 10});
  EXPECT_EQ(prediction::RunQueue(tasks, kDeep, 0).wait_ns, 0);
  // Two are out; the third is issued when the first has ended, at 11, the fourth at 21.
  const prediction::StepTimes times = prediction::RunQueue(tasks, 2, 0);
  EXPECT_EQ(times.wait_ns, 9 + 9);
  EXPECT_EQ(times.latency_ns, 41);
}

TEST(RunQueue, TakesNoTimeForNothing) {
  EXPECT_EQ(prediction::RunQueue({}, kDeep, 5).latency_ns, 0);
}

prediction::DeviceCosts Costs() {
  prediction::DeviceCosts costs;
  costs.graph_host_ns = 5;
  costs.graph_device_ns = 3;
  costs.capture_task_ns = 2;
  costs.copy_host_ns = 4;
  costs.copy_device_ns = 1;
  costs.copy_byte_ns = 0.5;
  costs.host_read_ns = 0;
  return costs;
}

const prediction::StepCopies kNone;

TEST(PredictStep, SavesTheHostTimeOfCapturedCalls) {
  const std::vector<prediction::PredictedCall> calls(10, {{20, 4}});
  const prediction::PredictedRegion region = {0, 10, true, /*already=*/false, /*makespan_ns=*/25};
  const prediction::Prediction prediction =
      prediction::PredictStep(calls, {&region, 1}, kNone, {2, 16}, Costs());
  EXPECT_EQ(prediction.eager.latency_ns, 204);
  // Two copies are issued until 8, graph at 13; the copies end at 14: 5 and then 9 until 14.
  EXPECT_EQ(prediction.captured_one_stream.latency_ns, 14 + 3 + 40);
  EXPECT_EQ(prediction.captured.latency_ns, 14 + 3 + 25);
  EXPECT_EQ(prediction.captured.host_ns, 13);
  EXPECT_EQ(prediction.capture_cost_ns, 10 * (20 + 2));
  EXPECT_NEAR(prediction.break_even_steps, 220.0 / (204 - 42), 1e-9);
  EXPECT_FALSE(prediction.stay_eager);
  EXPECT_EQ(prediction.reason, "");
}

TEST(PredictStep, TakesCallsAsFastAsTheyAreInGraphs) {
  const std::vector<prediction::PredictedCall> calls(10, {{20, 4}});
  const prediction::PredictedRegion region = {0, 10, true};
  prediction::DeviceCosts costs = Costs();
  costs.graph_share = 0.5;
  const prediction::Prediction prediction =
      prediction::PredictStep(calls, {&region, 1}, kNone, kNone, costs);
  EXPECT_EQ(prediction.eager.latency_ns, 204);
  EXPECT_EQ(prediction.captured.latency_ns, 5 + 3 + 20);
}

TEST(PredictStep, KeepsEagerCallsBetweenGraphsAndIssuesUpdates) {
  // A graph, a host read, a graph with one update.
  std::vector<prediction::PredictedCall> calls(9, {{20, 4}});
  calls[4].host_read = true;
  const prediction::PredictedRegion regions[] = {
      {0, 4, true}, {4, 5, false}, {5, 9, true, false, 0, /*updates=*/1}};
  const prediction::Prediction prediction =
      prediction::PredictStep(calls, regions, kNone, kNone, Costs());
  // Graph: issued at 5, 3 + 16 until 24. Read: issued at 25, executed until 29. Update until 49,
  // graph at 54, 3 + 16 until 73.
  EXPECT_EQ(prediction.captured.latency_ns, 73);
  EXPECT_EQ(prediction.captured.wait_ns, 4);
  EXPECT_EQ(prediction.captured.host_ns, 5 + 20 + 20 + 5);
}

TEST(PredictStep, SaysWhyToStayEager) {
  const std::vector<prediction::PredictedCall> fast(10, {{20, 4}});
  const std::vector<prediction::PredictedCall> heavy(10, {{20, 4000}});
  const prediction::PredictedRegion captured = {0, 10, true};
  const prediction::PredictedRegion eager = {0, 10, false};
  const auto reason = [](const std::vector<prediction::PredictedCall>& calls,
                         const prediction::PredictedRegion& region,
                         const prediction::StepCopies& copies,
                         const prediction::DeviceCosts& costs) {
    const prediction::Prediction prediction =
        prediction::PredictStep(calls, {&region, 1}, kNone, copies, costs);
    EXPECT_TRUE(prediction.stay_eager);
    EXPECT_EQ(prediction.break_even_steps, -1);
    return prediction.reason;
  };
  EXPECT_EQ(reason(fast, eager, kNone, Costs()),
            "Stay eager, because no part of the step can be captured.");
  EXPECT_EQ(reason(heavy, captured, kNone, Costs()),
            "Stay eager, because the device works for 40.0 us of the 40.0 us that an eager step "
            "takes: the host does not hold it up.");
  EXPECT_EQ(
      reason(fast, captured, {10, 2000}, Costs()),
      "Stay eager, because a captured step takes 1.1 us and an eager one 0.2 us; 1.1 us of it "
      "are input copies that only graphs need.");
  prediction::DeviceCosts dear = Costs();
  dear.graph_host_ns = 3000;
  EXPECT_EQ(reason(fast, captured, kNone, dear),
            "Stay eager, because a captured step takes 3.0 us and an eager one 0.2 us.");
}

TEST(RecordedCosts, TakesTheHostUntilTheNextCallAndTheOperatorsTime) {
  TemporaryTrace file("recorded-costs");
  TraceBuilder trace(file.path());
  const Tensor x = trace.NewTensor({4});
  for (int i = 0; i < 3; ++i) {
    trace.Call("aten::relu", {In("self", x)}, {Out("out", trace.NewTensor({4}))});
  }
  trace.Finish();
  const storage::Reader reader(file.path());
  const Work work = LoadWork(reader);
  const prediction::DeviceCosts costs =
      prediction::RecordedCosts(work, {{0, 0, static_cast<int64_t>(work.size())}});
  ASSERT_EQ(costs.by_signature.size(), 1u);
  const prediction::CallCost cost = costs.by_signature.begin()->second;
  EXPECT_EQ(cost.device_ns, static_cast<double>(work.calls[0].duration_ns));
  EXPECT_EQ(cost.host_ns, static_cast<double>(work.calls[1].begin_ns - work.calls[0].begin_ns));
  EXPECT_FALSE(costs.measured());
}

TEST(RecordedCosts, OfThreadsThatWaitForEachOtherAddUpToTheTimeOfTheStep) {
  TemporaryTrace file("recorded-threads");
  test::AclTraceBuilder trace(file.path());
  const int64_t stream = trace.NewStream();
  const Tensor x = trace.Device({4});
  const char* const operators[] = {"aclnnRelu", "aclnnAbs", "aclnnNeg", "aclnnAbs"};
  for (int i = 0; i < 4; ++i) {
    trace.Thread(1 + i % 2);  // such as the program and its backward pass
    trace.Op(operators[i], stream, {In("self", x), Out("out", x)});
  }
  trace.Finish();
  const storage::Reader reader(file.path());
  const Work work = LoadWork(reader);
  const prediction::DeviceCosts costs =
      prediction::RecordedCosts(work, {{0, 0, static_cast<int64_t>(work.size())}});
  double host_ns = 0;
  std::vector<const WorkCall*> issued;
  for (size_t call = 0; call < work.size(); ++call) {
    if (!work.form(call).active()) continue;
    host_ns += prediction::CostOf(costs, work, call).host_ns;
    issued.push_back(&work.calls[call]);
  }
  ASSERT_EQ(issued.size(), 4u);
  // The two aclnnAbs have one cost, the mean of both.
  EXPECT_EQ(host_ns, static_cast<double>(issued[3]->begin_ns + issued[3]->duration_ns -
                                         issued[0]->begin_ns));
}

// Calls begin and end at times of the builder's; the spans tell what the device did.
TEST(RecordedCosts, TakeTheDevicesOwnTimeWhereTheTraceHasIt) {
  TemporaryTrace file("recorded-spans");
  TraceBuilder trace(file.path());
  const Tensor x = trace.NewTensor({4});
  for (int i = 0; i < 3; ++i) {
    trace.Call("aten::relu", {In("self", x)}, {Out("out", trace.NewTensor({4}))});
  }
  trace.Call("aten::neg", {In("self", x)}, {Out("out", trace.NewTensor({4}))});
  trace.Call("aten::abs", {In("self", x)}, {Out("out", trace.NewTensor({4}))});
  trace.Finish();
  {
    storage::Reader reader(file.path(), storage::Reader::Mode::kReadWrite);
    // The first relu met an idle stream: launching is part of its span. The others waited in their
    // stream. The only span of neg includes launching.
    reader.database().Execute(
        "INSERT INTO device_span SELECT call_id, 1, begin_ns, begin_ns + 90000, 0 FROM call "
        "WHERE op = 'aten::relu' ORDER BY call_id LIMIT 1;"
        "INSERT INTO device_span SELECT call_id, 1, end_ns, end_ns + 7000 + call_id, 0 FROM call "
        "WHERE op = 'aten::relu' ORDER BY call_id LIMIT -1 OFFSET 1;"
        "INSERT INTO device_span SELECT call_id, 1, begin_ns, begin_ns + 50000, 0 FROM call "
        "WHERE op = 'aten::neg'");
  }
  const storage::Reader reader(file.path());
  const Work work = LoadWork(reader);
  const prediction::DeviceCosts costs =
      prediction::RecordedCosts(work, {{0, 0, static_cast<int64_t>(work.size())}});
  const auto device_ns = [&](size_t call) {
    return prediction::CostOf(costs, work, call).device_ns;
  };
  const auto own = [&](size_t call) {
    return 7000 + static_cast<double>(work.calls[call].call_id);
  };
  EXPECT_EQ(device_ns(0), (own(1) + own(2)) / 2);
  EXPECT_EQ(device_ns(3), 50000);
  EXPECT_EQ(device_ns(4), static_cast<double>(work.calls[4].duration_ns));
  EXPECT_EQ(costs.timed_signatures, 2);
  EXPECT_EQ(costs.launching_signatures, 1);
}

// The first execution of a call often loads its kernel.
TEST(RecordedCosts, AreTheMediansOfTheRangesSoThatOneSlowExecutionDoesNotCount) {
  TemporaryTrace file("recorded-medians");
  TraceBuilder trace(file.path());
  const Tensor x = trace.NewTensor({4});
  for (int i = 0; i < 3; ++i) {
    trace.Call("aten::relu", {In("self", x)}, {Out("out", trace.NewTensor({4}))});
  }
  trace.Finish();
  const storage::Reader reader(file.path());
  Work work = LoadWork(reader);
  work.calls[0].duration_ns = 5'000'000;
  work.calls[1].duration_ns = 10;
  work.calls[2].duration_ns = 20;
  const auto device_ns = [&](const std::vector<StepRange>& steps) {
    return prediction::RecordedCosts(work, steps).by_signature.begin()->second.device_ns;
  };
  EXPECT_EQ(device_ns({{0, 0, 1}}), 5e6);
  EXPECT_EQ(device_ns({{0, 0, 1}, {1, 1, 2}, {2, 2, 3}}), 20);
}

TEST(LoadCalibration, GivesBackTheMediansOfTheLastRunOfADevice) {
  TemporaryTrace file("calibration");
  TraceBuilder trace(file.path());
  const Tensor x = trace.NewTensor({4});
  trace.Call("aten::relu", {In("self", x)}, {Out("out", trace.NewTensor({4}))});
  trace.Finish();
  {
    storage::Reader reader(file.path(), storage::Reader::Mode::kReadWrite);
    EXPECT_EQ(prediction::LoadCalibration(reader), std::nullopt);
    const int64_t call = LoadWork(reader).calls[0].call_id;
    storage::Results results(reader);
    prediction::DeviceCosts costs;
    for (const double factor : {1.0, 2.0}) {
      costs.graph_host_ns = 100 * factor;
      costs.streams.wait_ns = 7 * factor;
      costs.streams.saturates = {true, false, true, false};
      costs.streams.overlaps = false;
      const int64_t run = results.AddRun(
          {.mode = "calibrate", .device = "soft", .options = prediction::ToJson(costs)});
      for (int64_t repetition = 0; repetition < 3; ++repetition) {
        results.AddSample({.run_id = run,
                           .repetition = repetition,
                           .call_id = call,
                           .host_ns = static_cast<int64_t>(10 * factor) + repetition,
                           .device_ns = static_cast<int64_t>(50 * factor) - repetition});
      }
      results.FinishRun(run, 0);
    }
    results.AddRun({.mode = "calibrate", .device = "soft"});  // did not finish
    results.Commit();
  }
  const storage::Reader reader(file.path());
  EXPECT_EQ(prediction::LoadCalibration(reader, "another device"), std::nullopt);
  const std::optional<prediction::DeviceCosts> costs = prediction::LoadCalibration(reader, "soft");
  ASSERT_TRUE(costs.has_value());
  EXPECT_TRUE(costs->measured());
  EXPECT_EQ(costs->graph_host_ns, 200);
  EXPECT_EQ(costs->streams.wait_ns, 14);
  EXPECT_FALSE(costs->streams.overlaps);
  EXPECT_EQ(costs->streams.saturates, (std::array<bool, 4>{true, false, true, false}));
  const int64_t signature = LoadWork(reader).form(0).signature_id;
  EXPECT_EQ(costs->by_signature.at(signature).host_ns, 21);
  EXPECT_EQ(costs->by_signature.at(signature).device_ns, 99);
}

TEST(CostOf, FallsBackToCopiesAndToTheRecording) {
  TemporaryTrace file("cost-of");
  TraceBuilder trace(file.path());
  const Tensor x = trace.NewTensor({4});
  trace.Call("aten::relu", {In("self", x)}, {Out("out", trace.NewTensor({4}))});
  trace.Call("aten::_local_scalar_dense", {In("self", trace.NewTensor({}))},
             {Real("out", 1.5, storage::Direction::kOut)});
  trace.Call("aten::view", {In("self", x)}, {Out("out", x)});
  trace.Finish();
  const storage::Reader reader(file.path());
  const Work work = LoadWork(reader);
  const auto recorded = static_cast<double>(work.calls[0].duration_ns);
  prediction::DeviceCosts costs = Costs();
  EXPECT_EQ(prediction::CostOf(costs, work, 1).host_ns,
            static_cast<double>(work.calls[1].duration_ns));
  costs.device = "soft";
  EXPECT_EQ(prediction::CostOf(costs, work, 0).device_ns, recorded);
  EXPECT_EQ(prediction::CostOf(costs, work, 1).host_ns, 4);
  EXPECT_EQ(prediction::CostOf(costs, work, 1).device_ns, 1 + 4 * 0.5);
  EXPECT_EQ(prediction::CostOf(costs, work, 2).host_ns, 0);
  costs.by_signature[work.form(0).signature_id] = {11, 22};
  EXPECT_EQ(prediction::CostOf(costs, work, 0).device_ns, 22);
}

}  // namespace
}  // namespace acltape::analyzer
