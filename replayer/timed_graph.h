// Tools with which a calibration measures: graphs that are timed as a whole, events without time
// stamps, and memory that is put back between repetitions.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "replayer/device/captured_graph.h"
#include "replayer/device/device.h"

namespace acltape::replayer {

// Events that order streams. They have no time stamps.
std::vector<Event> SyncEvents(const Device& device, size_t count);

// A graph of the work that `issue` puts on the device's stream.
class TimedGraph {
 public:
  TimedGraph(Device& device, const std::function<void()>& issue);
  ~TimedGraph();
  TimedGraph(const TimedGraph&) = delete;
  TimedGraph& operator=(const TimedGraph&) = delete;

  // Nanoseconds between two events around an execution, and those of the host's call.
  double DeviceTime(double* host_ns = nullptr) const;
  double MedianDeviceTime(int repetitions) const;
  double capture_ns() const { return capture_ns_; }

 private:
  Device& device_;
  CapturedGraph graph_;
  double capture_ns_ = 0;
};

struct MemoryRange {
  uint8_t* address = nullptr;
  int64_t bytes = 0;
};

// Device memory as it was, to be put back.
class SavedRanges {
 public:
  SavedRanges(Device& device, const std::vector<MemoryRange>& ranges);
  void Restore() const;

 private:
  struct Copy {
    uint8_t* saved = nullptr;
    uint8_t* place = nullptr;
    size_t bytes = 0;
  };
  Device& device_;
  std::vector<Copy> copies_;
  Block block_;
};

}  // namespace acltape::replayer
