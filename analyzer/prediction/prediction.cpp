#include "analyzer/prediction/prediction.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

namespace acltape::analyzer::prediction {
namespace {

std::string Duration(double ns) {
  if (ns >= 1e6) return fmt::format("{:.2f} ms", ns / 1e6);
  return fmt::format("{:.1f} us", ns / 1e3);
}

class Predictor {
 public:
  Predictor(std::span<const PredictedCall> calls, std::span<const PredictedRegion> regions,
            const DeviceCosts& costs)
      : calls_(calls), regions_(regions), costs_(costs) {}

  StepTimes Eager(const StepCopies& copies) const {
    std::vector<QueueTask> tasks = CopyTasks(copies);
    AddCalls(0, calls_.size(), tasks);
    return Run(tasks);
  }

  StepTimes Captured(const StepCopies& copies, bool one_stream) const {
    std::vector<QueueTask> tasks = CopyTasks(copies);
    for (const PredictedRegion& region : regions_) {
      if (!region.captured || region.already) {
        AddCalls(region.first, region.end, tasks);
        continue;
      }
      double work_ns = 0;
      double host_ns = 0;
      for (size_t call = region.first; call < region.end; ++call) {
        work_ns += calls_[call].cost.device_ns;
        host_ns += calls_[call].cost.host_ns;
      }
      const double update_ns =
          region.end > region.first ? host_ns / static_cast<double>(region.end - region.first) : 0;
      for (int32_t update = 0; update < region.updates; ++update) tasks.push_back({update_ns, 0});
      const double makespan_ns =
          one_stream || region.makespan_ns <= 0 ? work_ns : region.makespan_ns;
      tasks.push_back(
          {costs_.graph_host_ns, costs_.graph_device_ns + costs_.graph_share * makespan_ns});
    }
    return Run(tasks);
  }

  double CaptureCost() const {
    double cost_ns = 0;
    for (const PredictedRegion& region : regions_) {
      if (!region.captured || region.already) continue;
      for (size_t call = region.first; call < region.end; ++call) {
        cost_ns += calls_[call].cost.host_ns + costs_.capture_task_ns;
      }
    }
    return cost_ns;
  }

 private:
  std::vector<QueueTask> CopyTasks(const StepCopies& copies) const {
    if (copies.copies <= 0) return {};
    const double bytes = static_cast<double>(copies.bytes) / static_cast<double>(copies.copies);
    return std::vector<QueueTask>(
        static_cast<size_t>(copies.copies),
        {costs_.copy_host_ns, costs_.copy_device_ns + bytes * costs_.copy_byte_ns});
  }

  void AddCalls(size_t first, size_t end, std::vector<QueueTask>& tasks) const {
    for (size_t call = first; call < end; ++call) {
      tasks.push_back(
          {calls_[call].cost.host_ns, calls_[call].cost.device_ns, calls_[call].host_read});
    }
  }

  StepTimes Run(const std::vector<QueueTask>& tasks) const {
    return RunQueue(tasks, costs_.queue_depth, costs_.host_read_ns);
  }

  std::span<const PredictedCall> calls_;
  std::span<const PredictedRegion> regions_;
  const DeviceCosts& costs_;
};

// Says why a captured step gains nothing.
std::string ReasonToStayEager(const Prediction& prediction,
                              std::span<const PredictedRegion> regions,
                              const StepCopies& eager_copies, const StepCopies& captured_copies,
                              const DeviceCosts& costs) {
  const auto captured_anew = [](const PredictedRegion& region) {
    return region.captured && !region.already;
  };
  if (std::none_of(regions.begin(), regions.end(), captured_anew)) {
    const auto already = [](const PredictedRegion& region) { return region.already; };
    return std::any_of(regions.begin(), regions.end(), already)
               ? "Leave the step as it is, because no further graph saves anything: the program's "
                 "own graphs hold what is worth a capture."
               : "Stay eager, because no part of the step can be captured.";
  }
  const StepTimes& eager = prediction.eager;
  const StepTimes& captured = prediction.captured;
  if (!eager.host_bound() && eager.device_ns > 0.9 * eager.latency_ns) {
    return fmt::format(
        "Stay eager, because the device works for {} of the {} that an eager step takes: the host "
        "does not hold it up.",
        Duration(eager.device_ns), Duration(eager.latency_ns));
  }
  const double copies_ns =
      static_cast<double>(captured_copies.copies - eager_copies.copies) *
          (costs.copy_host_ns + costs.copy_device_ns) +
      static_cast<double>(captured_copies.bytes - eager_copies.bytes) * costs.copy_byte_ns;
  if (captured.latency_ns - copies_ns < eager.latency_ns) {
    return fmt::format(
        "Stay eager, because a captured step takes {} and an eager one {}; {} of it are input "
        "copies that only graphs need.",
        Duration(captured.latency_ns), Duration(eager.latency_ns), Duration(copies_ns));
  }
  return fmt::format("Stay eager, because a captured step takes {} and an eager one {}.",
                     Duration(captured.latency_ns), Duration(eager.latency_ns));
}

}  // namespace

StepTimes RunQueue(std::span<const QueueTask> tasks, int64_t queue_depth, double host_read_ns) {
  StepTimes times;
  double host = 0;
  double stream = 0;
  std::deque<double> ends;  // ends of the last `queue_depth` tasks
  for (const QueueTask& task : tasks) {
    if (static_cast<int64_t>(ends.size()) >= queue_depth) {
      times.wait_ns += std::max(0.0, ends.front() - host);
      host = std::max(host, ends.front());
      ends.pop_front();
    }
    host += task.host_ns;
    times.host_ns += task.host_ns;
    stream = std::max(stream, host) + task.device_ns;
    times.device_ns += task.device_ns;
    ends.push_back(stream);
    if (!task.host_read) continue;
    times.wait_ns += stream + host_read_ns - host;
    host = stream + host_read_ns;
    ends.clear();
  }
  times.latency_ns = tasks.empty() ? 0 : std::max(host, stream + host_read_ns);
  return times;
}

Prediction PredictStep(std::span<const PredictedCall> calls,
                       std::span<const PredictedRegion> regions, const StepCopies& eager_copies,
                       const StepCopies& captured_copies, const DeviceCosts& costs, double noise) {
  const Predictor predictor(calls, regions, costs);
  Prediction prediction;
  prediction.eager = predictor.Eager(eager_copies);
  prediction.captured_one_stream = predictor.Captured(captured_copies, /*one_stream=*/true);
  prediction.captured = predictor.Captured(captured_copies, /*one_stream=*/false);
  prediction.capture_cost_ns = predictor.CaptureCost();
  const double gain_ns = prediction.eager.latency_ns - prediction.captured.latency_ns;
  prediction.stay_eager = gain_ns <= noise * prediction.eager.latency_ns;
  if (prediction.stay_eager) {
    prediction.reason =
        ReasonToStayEager(prediction, regions, eager_copies, captured_copies, costs);
  } else {
    prediction.break_even_steps = prediction.capture_cost_ns / gain_ns;
  }
  return prediction;
}

}  // namespace acltape::analyzer::prediction
