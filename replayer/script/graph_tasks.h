// Which tasks of a captured graph come from which call, and leaving some of them out (rules ENUM-01
// to ENUM-16).
#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "replayer/device.h"

namespace acltape::replayer {

// Tasks of a graph by call, in order of capture.
using CallTasks = std::map<int64_t, std::vector<aclmdlRITask>>;

// Counts the tasks of the graph that is being captured on the device's own stream around each
// launch. Throws Error kDevice when the device library cannot list tasks.
class GraphTaskRecorder {
 public:
  explicit GraphTaskRecorder(Device& device);
  void Before(int64_t call_id);
  void After();
  // Call it when the capture has ended.
  CallTasks TasksOf(aclmdlRI graph) const;

 private:
  size_t CountTasks() const;

  Device& device_;
  aclmdlRI graph_ = nullptr;  // still open
  struct Span {
    int64_t call_id = 0;
    size_t first = 0;  // in order of capture
    size_t end = 0;
  };
  std::vector<Span> spans_;
};

// From now on executions of the graph skip the tasks of these calls. The graph must not be running.
// Throws Error kDevice when a call has a task that no device can skip, such as a copy.
void DisableTasks(Device& device, aclmdlRI graph, const CallTasks& tasks,
                  const std::vector<int64_t>& calls);

}  // namespace acltape::replayer
