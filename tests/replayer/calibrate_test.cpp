#include "replayer/calibrate.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "analyzer/program/program.h"
#include "tests/replayer/small_programs.h"

namespace acltape::replayer {
namespace {

using test::Add;
using test::Floats;
using test::In;
using test::Numbers;
using test::Out;
using test::Recorded;
using test::Tensor;
using test::TraceBuilder;
using test::Written;

// A small sum and a large matrix product per step, and a parameter that grows in place.
Recorded SumAndProduct(int64_t size) {
  return Recorded(3, [=](TraceBuilder& trace, int step) {
    static Tensor parameter;
    if (step == 0) parameter = trace.NewTensor({4});
    const Tensor x = trace.NewTensor({4});
    Add(trace, x, x, trace.NewTensor({4}));
    trace.Before(x, Numbers(4, step));
    const Tensor a = trace.NewTensor({size, size});
    trace.Call("aten::mm", {In("self", a), In("mat2", a)},
               {Out("out", trace.NewTensor({size, size}))});
    trace.Before(a, Numbers(size * size, step));
    trace.Call("aten::add_.Tensor",
               {Written("self", parameter), In("other", x), test::Int("alpha", 1)}, {});
    if (step == 0) trace.Before(parameter, Numbers(4, 7));
  });
}

// On one thread, whose times depend less on what else the machine does.
CalibrationReport CalibrateQuickly(const storage::Reader& reader, storage::Results* results) {
  setenv("OMP_NUM_THREADS", "1", /*overwrite=*/1);
  setenv("OPENBLAS_NUM_THREADS", "1", /*overwrite=*/1);
  CalibrateOptions options;
  options.repetitions = 3;
  return Calibrate(reader, options, results);
}

TEST(Calibration, MeasuresEachSignatureOfAStepAndTheDeviceItself) {
  const Recorded recorded = SumAndProduct(256);
  const storage::Reader reader(recorded.path());
  const CalibrationReport report = CalibrateQuickly(reader, nullptr);
  const analyzer::prediction::DeviceCosts& costs = report.costs;
  EXPECT_TRUE(report.notes.empty());
  EXPECT_EQ(report.signatures, 3);
  EXPECT_TRUE(costs.measured());
  for (const auto& [signature, cost] : costs.by_signature) {
    EXPECT_GT(cost.host_ns, 0);
    EXPECT_LT(cost.host_ns, 1e7);
  }
  // 33 million floating-point operations take longer than four additions; issuing them does not.
  const analyzer::Program program = analyzer::LoadProgram(reader);
  const analyzer::prediction::CallCost sum =
      costs.by_signature.at(program.leaves[0].call.signature_id);
  const analyzer::prediction::CallCost product =
      costs.by_signature.at(program.leaves[1].call.signature_id);
  EXPECT_GT(product.device_ns, 2 * sum.device_ns);
  EXPECT_GT(product.device_ns, 50000);
  EXPECT_LT(product.host_ns, product.device_ns);

  EXPECT_GT(costs.graph_host_ns, 0);
  EXPECT_GT(costs.graph_share, 0.05);
  EXPECT_LT(costs.graph_share, 20);
  EXPECT_GT(costs.copy_host_ns, 0);
  EXPECT_GT(costs.record_host_ns, 0);
  EXPECT_GT(costs.wait_host_ns, 0);
  EXPECT_GE(costs.host_read_ns, 0);
  EXPECT_GT(costs.copy_byte_ns, 0.001);  // below a terabyte a second
  // A graph runs on one worker of the soft device: its streams take turns.
  EXPECT_FALSE(costs.streams.overlaps);
  EXPECT_TRUE(costs.streams.saturates[static_cast<size_t>(analyzer::streams::Resource::kCube)]);
  EXPECT_LT(costs.streams.record_ns + costs.streams.wait_ns, 20000);
}

TEST(Calibration, IsKeptInTheTraceForLaterPredictions) {
  const Recorded recorded = SumAndProduct(8);
  CalibrationReport report;
  {
    storage::Reader reader(recorded.path(), storage::Reader::Mode::kReadWrite);
    storage::Results results(reader);
    report = CalibrateQuickly(reader, &results);
  }
  const storage::Reader reader(recorded.path());
  const auto costs = analyzer::prediction::LoadCalibration(reader, report.costs.device);
  ASSERT_TRUE(costs.has_value());
  EXPECT_EQ(costs->run_id, report.costs.run_id);
  EXPECT_NEAR(costs->graph_host_ns, report.costs.graph_host_ns, 1);
  EXPECT_EQ(costs->streams.saturates, report.costs.streams.saturates);
  ASSERT_EQ(costs->by_signature.size(), 3u);
  for (const auto& [signature, cost] : costs->by_signature) {
    EXPECT_NEAR(cost.host_ns, report.costs.by_signature.at(signature).host_ns, 1);
    EXPECT_NEAR(cost.device_ns, report.costs.by_signature.at(signature).device_ns, 1);
  }
}

TEST(Calibration, RefusesValuesThatTheTraceLacks) {
  const Recorded recorded([](TraceBuilder& trace) {
    const Tensor x = trace.NewTensor({4});
    Add(trace, x, x, trace.NewTensor({4}));
  });
  const storage::Reader reader(recorded.path());
  EXPECT_THROW(CalibrateQuickly(reader, nullptr), Error);
  CalibrateOptions synthesised;
  synthesised.repetitions = 3;
  synthesised.data = Data::kSynthesised;
  EXPECT_EQ(Calibrate(reader, synthesised, nullptr).signatures, 1);
}

}  // namespace
}  // namespace acltape::replayer
