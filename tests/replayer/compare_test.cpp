#include "replayer/compare.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include "storage/database.h"
#include "tests/replayer/small_programs.h"

namespace acltape::replayer {
namespace {

using test::Floats;
using test::In;
using test::Numbers;
using test::Out;
using test::Recorded;
using test::Tensor;
using test::TraceBuilder;

Recorded TenRelus(bool growing) {
  return Recorded(3, [=](TraceBuilder& trace, int step) {
    const int64_t size = growing ? step + 1 : 4;
    Tensor x = trace.NewTensor({size});
    for (int i = 0; i < 10; ++i) {
      const Tensor y = trace.NewTensor({size});
      trace.Call("aten::relu", {In("self", x)}, {Out("out", y)});
      if (i == 0) trace.Before(x, Numbers(size, step));
      x = y;
    }
  });
}

CompareReport CompareTwice(const Recorded& recorded,
                           std::shared_ptr<const ChosenPlan> plan = nullptr) {
  storage::Reader reader(recorded.path(), storage::Reader::Mode::kReadWrite);
  storage::Results results(reader);
  CompareOptions options;
  options.repetitions = 4;
  options.warmup = 1;
  options.plan = std::move(plan);
  return Compare(reader, options, &results);
}

// The chain of step 1 in one captured region, every other call on a side stream.
std::shared_ptr<ChosenPlan> AlternatingStreams() {
  const auto chosen = std::make_shared<ChosenPlan>();
  chosen->path = "plan.json";
  chosen->plan.step = 1;
  chosen->plan.streams = 2;
  chosen->plan.predicted.eager_ns = 3e4;
  chosen->plan.predicted.captured_ns = 1e4;
  chosen->plan.predicted.calibrated = true;
  analyzer::plan::PlanRegion region;
  region.captured = true;
  region.first_call = 11;
  region.last_call = 20;
  for (int64_t call = 11; call <= 20; ++call) {
    analyzer::plan::PlanPlacement placement;
    placement.call_id = call;
    placement.stream = static_cast<int32_t>(call % 2);
    region.placements.push_back(placement);
    if (call > 11) region.waits.push_back({call - 1, call, static_cast<int32_t>(call - 12)});
  }
  chosen->plan.regions.push_back(region);
  return chosen;
}

TEST(Comparison, TimesAPlanNextToBothOthersAndItsPredictions) {
  const Recorded recorded = TenRelus(false);
  const CompareReport report = CompareTwice(recorded, AlternatingStreams());
  EXPECT_EQ(report.ExitCode(), 0);
  for (const ExecutionTimes* times : {&report.eager, &report.captured, &report.planned}) {
    EXPECT_EQ(times->latency_ns.samples, 12);
  }
  EXPECT_EQ(report.planned_host_ratio.samples, 12);
  ASSERT_EQ(report.predictions.size(), 2u);  // for one stream the plan predicts nothing
  EXPECT_EQ(report.predictions[0].execution, "eager");
  EXPECT_EQ(report.predictions[1].execution, "planned");
  EXPECT_EQ(report.predictions[1].measured_ns, report.planned.latency_ns.median);
  EXPECT_NEAR(report.predictions[1].error_percent(),
              100 * (1e4 / report.planned.latency_ns.median - 1), 1e-9);
  EXPECT_EQ(report.planned_run_id, report.captured_run_id + 1);
}

TEST(Comparison, DoesNotHoldATimeOfTheProgramAgainstOneOfAReplay) {
  const Recorded recorded = TenRelus(false);
  const auto chosen = AlternatingStreams();
  chosen->plan.predicted.calibrated = false;
  EXPECT_EQ(CompareTwice(recorded, chosen).predictions.size(), 0u);
}

TEST(Comparison, ReportsBothExecutionsOfTheSteadySteps) {
  const Recorded recorded = TenRelus(false);
  const CompareReport report = CompareTwice(recorded);
  EXPECT_EQ(report.ExitCode(), 0);
  EXPECT_EQ(report.steady_steps, 3);
  EXPECT_EQ(report.leaves_per_step, 10);
  EXPECT_EQ(report.device_calls_per_step, 10);
  EXPECT_EQ(report.regions_per_step, 1);
  EXPECT_EQ(report.eager.host_ns.samples, 12);
  EXPECT_EQ(report.captured.host_ns.samples, 12);
  EXPECT_GT(report.eager.host_ns.median, 0);
  EXPECT_GT(report.captured.latency_ns.median, 0);
  EXPECT_LE(report.eager.host_ns.low, report.eager.host_ns.median);
  EXPECT_GE(report.eager.host_ns.high, report.eager.host_ns.median);
  EXPECT_EQ(report.copies_per_step, 1);
  EXPECT_EQ(report.copy_bytes_per_step, 16);
  // Ten calls of 600 ns that begin 1000 ns apart.
  EXPECT_EQ(report.recorded_leaves_ns.median, 6000);
  EXPECT_EQ(report.recorded_span_ns.median, 9600);
}

TEST(Comparison, WritesARunAndItsSamplesPerExecution) {
  const Recorded recorded = TenRelus(false);
  const CompareReport report = CompareTwice(recorded);
  EXPECT_NE(report.eager_run_id, report.captured_run_id);
  const storage::Reader reader(recorded.path());
  for (const int64_t run : {report.eager_run_id, report.captured_run_id}) {
    storage::Statement samples(reader.database(),
                               "SELECT count(*), count(DISTINCT step), min(host_ns) FROM sample "
                               "WHERE run_id = ?");
    samples.Bind(1, run);
    ASSERT_TRUE(samples.Next());
    EXPECT_EQ(samples.Integer(0), 12);
    EXPECT_EQ(samples.Integer(1), 3);
    EXPECT_GT(samples.Integer(2), 0);
  }
}

TEST(Comparison, AProgramThatCannotBeCapturedIsTimedEagerlyWithTheReason) {
  const CompareReport report = CompareTwice(TenRelus(true));
  EXPECT_EQ(report.ExitCode(), 1);
  EXPECT_NE(report.refusal.find("shape"), std::string::npos) << report.refusal;
  EXPECT_EQ(report.eager.host_ns.samples, 8);  // all steps but the first
  EXPECT_EQ(report.captured.host_ns.samples, 0);
  EXPECT_EQ(report.break_even_steps, -1);
}

}  // namespace
}  // namespace acltape::replayer
