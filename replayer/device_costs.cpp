#include "replayer/device_costs.h"

#include <algorithm>
#include <vector>

#include "base/median.h"
#include "replayer/engine/eager.h"
#include "replayer/timed_graph.h"

namespace acltape::replayer {
namespace {

constexpr int kTasks = 64;  // tasks of each graph that is timed
constexpr int kLargeCopies = 8;

double Differ(double longer, double shorter, int tasks) {
  return std::max(0.0, (longer - shorter) / tasks);
}

// Returns the device time that each further task adds to a graph. `issue` gets the number of the
// task.
double DeviceTimePerTask(Device& device, int repetitions,
                         const std::function<void(size_t)>& issue) {
  const auto graph_of = [&](size_t tasks) {
    const TimedGraph graph(device, [&] {
      for (size_t task = 0; task < tasks; ++task) issue(task);
    });
    return graph.MedianDeviceTime(repetitions);
  };
  return Differ(graph_of(1 + kTasks), graph_of(1), kTasks);
}

// Returns the host time of `issue`. The stream is idle at the start.
double IssueTime(Device& device, const std::function<void()>& issue) {
  device.Synchronize();
  const int64_t begin = NowNs();
  issue();
  return static_cast<double>(NowNs() - begin);
}

}  // namespace

void MeasureDeviceCosts(Device& device, int repetitions, const Block& pinned, const Block& memory,
                        analyzer::prediction::DeviceCosts& costs) {
  const auto copy = [&](size_t bytes, int count) {
    return [&, bytes, count] {
      for (int i = 0; i < count; ++i) device.Upload(memory.data(), pinned.data(), bytes);
    };
  };
  const TimedGraph one(device, copy(16, 1));
  const TimedGraph many(device, copy(16, 1 + kTasks));
  const TimedGraph large(device, copy(kCalibrationBytes, kLargeCopies));
  const double one_ns = one.MedianDeviceTime(repetitions);
  costs.copy_device_ns = Differ(many.MedianDeviceTime(repetitions), one_ns, kTasks);
  costs.graph_device_ns = std::max(0.0, one_ns - costs.copy_device_ns);
  const double large_ns =
      std::max(0.0, large.MedianDeviceTime(repetitions) - costs.graph_device_ns) / kLargeCopies;
  costs.copy_byte_ns = std::max(0.0, large_ns - costs.copy_device_ns) / kCalibrationBytes;

  std::vector<double> graph_host, copy_host, read, record_host, wait_host;
  const OwnedStream side = MakeStream(device.work());
  const std::vector<Event> events = SyncEvents(device, size_t{2} * kTasks);
  for (int i = 0; i < repetitions; ++i) {
    one.DeviceTime(&graph_host.emplace_back());
    copy_host.push_back(IssueTime(device, copy(16, kTasks)) / kTasks);
    device.Synchronize();
    const int64_t begin = NowNs();
    device.Download(pinned.data(), memory.data(), 16);
    device.Synchronize();
    read.push_back(static_cast<double>(NowNs() - begin));
    record_host.push_back(IssueTime(device,
                                    [&] {
                                      for (size_t e = 0; e < kTasks; ++e) events[e].Record();
                                    }) /
                          kTasks);
    wait_host.push_back(IssueTime(device,
                                  [&] {
                                    for (size_t e = 0; e < kTasks; ++e)
                                      events[e].MakeWait(side.get());
                                  }) /
                        kTasks);
    device.work().WaitForStream(side.get()).Check();
  }
  costs.graph_host_ns = base::Median(graph_host);
  costs.copy_host_ns = base::Median(copy_host);
  costs.host_read_ns =
      std::max(0.0, base::Median(read) - costs.copy_host_ns - costs.copy_device_ns);
  costs.record_host_ns = base::Median(record_host);
  costs.wait_host_ns = base::Median(wait_host);
  costs.capture_task_ns = std::max(0.0, many.capture_ns() / (1 + kTasks) - costs.copy_host_ns);

  const std::vector<Event> recorded = SyncEvents(device, 1 + kTasks);
  costs.streams.record_ns =
      DeviceTimePerTask(device, repetitions, [&](size_t e) { recorded[e].Record(); });
  // Each task goes to the other stream and back.
  const std::vector<Event> there = SyncEvents(device, 1 + kTasks);
  const std::vector<Event> back = SyncEvents(device, 1 + kTasks);
  const double round_trip_ns = DeviceTimePerTask(device, repetitions, [&](size_t e) {
    there[e].Record();
    there[e].MakeWait(side.get());
    back[e].Record(side.get());
    back[e].MakeWait(device.stream());
  });
  costs.streams.wait_ns = std::max(0.0, round_trip_ns / 2 - costs.streams.record_ns);
}

}  // namespace acltape::replayer
