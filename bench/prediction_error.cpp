// Measures how far predicted latencies of a step are from measured ones.
//
//   build/bin/prediction_error TRACE [REPETITIONS]     a trace of the aten level with values
//
// Calibrates the device (replayer/calibrate.h), predicts an eager and a captured step on one stream
// from that and from the recording alone, then times both as `acltape compare` does. Regions are
// those of the default replay: runs of calls without a barrier.
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "analyzer/prediction/prediction.h"
#include "analyzer/program/regions.h"
#include "analyzer/program/step_template.h"
#include "analyzer/steps/steps.h"
#include "replayer/calibrate.h"
#include "replayer/compare.h"

namespace {

using namespace acltape;  // NOLINT(google-build-using-namespace): one small program

// The template step as the model sees it.
struct Step {
  std::vector<acltape::analyzer::prediction::PredictedCall> calls;
  std::vector<acltape::analyzer::prediction::PredictedRegion> regions;
};

Step DescribeStep(const acltape::analyzer::Work& work, const acltape::analyzer::Program& program,
                  const acltape::analyzer::StepTemplate& step_class,
                  const acltape::analyzer::prediction::DeviceCosts& costs) {
  Step step;
  for (const int64_t leaf : step_class.leaves) {
    const int64_t call = work.Find(program.leaves[leaf].call.call_id);
    step.calls.push_back(
        {acltape::analyzer::prediction::CostOf(costs, work, static_cast<size_t>(call)),
         program.leaves[leaf].kind == acltape::analyzer::LeafKind::kHostRead});
  }
  acltape::analyzer::Barriers barriers(program.work);
  const std::vector<acltape::analyzer::Region> regions = acltape::analyzer::FindRegions(
      step_class.leaves.size(),
      [&](size_t place) {
        return barriers.ReasonOf(static_cast<size_t>(step_class.leaves[place]));
      },
      [](size_t) { return false; });
  for (const acltape::analyzer::Region& region : regions) {
    step.regions.push_back({region.first, region.end, region.captured});
  }
  return step;
}

void PrintRow(const char* source, const char* execution, double predicted_ns, double measured_ns) {
  fmt::print("{:12} {:10} {:>12.1f} {:>12.1f} {:>8.0f}%\n", source, execution, predicted_ns / 1e3,
             measured_ns / 1e3, 100 * (predicted_ns / measured_ns - 1));
}

int Measure(const std::string& path, int repetitions) {
  const storage::Reader trace(path);
  const acltape::analyzer::Work work = acltape::analyzer::LoadWork(trace);
  acltape::analyzer::Program program = acltape::analyzer::LoadProgram(trace);
  const acltape::analyzer::StepClasses classes = acltape::analyzer::ClassifySteps(program);
  if (classes.classes.empty()) throw Error(ErrorKind::kTrace, path + " has no steps to predict.");

  const acltape::replayer::CalibrationReport calibration =
      acltape::replayer::Calibrate(trace, {}, nullptr);
  acltape::replayer::CompareOptions options;
  options.repetitions = repetitions;
  const acltape::replayer::CompareReport measured =
      acltape::replayer::Compare(trace, options, nullptr);
  const acltape::analyzer::prediction::StepCopies copies = {measured.copies_per_step,
                                                            measured.copy_bytes_per_step};

  fmt::print("{:12} {:10} {:>12} {:>12} {:>9}\n", "costs", "execution", "predicted us",
             "measured us", "error");
  const auto print = [&](const char* source,
                         const acltape::analyzer::prediction::DeviceCosts& costs) {
    const Step step = DescribeStep(work, program, classes.Largest(), costs);
    const acltape::analyzer::prediction::Prediction predicted =
        acltape::analyzer::prediction::PredictStep(step.calls, step.regions, copies, copies, costs);
    PrintRow(source, "eager", predicted.eager.latency_ns, measured.eager.latency_ns.median);
    if (measured.refusal.empty()) {
      PrintRow(source, "captured", predicted.captured.latency_ns,
               measured.captured.latency_ns.median);
    }
  };
  print("calibrated", calibration.costs);
  print("recorded", acltape::analyzer::prediction::RecordedCosts(
                        work, {{0, 0, static_cast<int64_t>(work.size())}}));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    fmt::print(stderr, "usage: prediction_error TRACE [REPETITIONS]\n");
    return 2;
  }
  try {
    return Measure(argv[1], argc > 2 ? std::max(3, std::atoi(argv[2])) : 20);
  } catch (const Error& error) {
    fmt::print(stderr, "prediction_error: {}\n", error.what());
    return static_cast<int>(error.kind());
  }
}
