// Finds the call that each task of a captured graph belongs to, and leaves tasks out of the graph
// (rules ENUM-01 to ENUM-16).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "replayer/device/device.h"

namespace acltape::replayer {

// The tasks of a graph by call, in order of capture.
using CallTasks = std::map<int64_t, std::vector<aclmdlRITask>>;

// A graph lists its tasks only after its capture has ended, and it does not tell which call a task
// comes from. So each launch is first captured alone, which tells its number of kernels. The
// kernels of the whole graph are then counted off in the order of capture. Throws Error kDevice if
// the device library cannot list tasks, or if a launch has tasks other than kernels (a copy cannot
// be disabled).
class GraphTaskRecorder {
 public:
  explicit GraphTaskRecorder(Device& device);
  // Adds a call; `launch` puts it on the device's own stream. Calls must be added in the order in
  // which the graph will hold them, and not during a capture.
  void Add(int64_t call_id, const std::function<void()>& launch);
  // Returns the tasks of a graph that holds exactly the calls that were added.
  CallTasks TasksOf(aclmdlRI graph) const;

 private:
  Device& device_;
  std::vector<std::pair<int64_t, size_t>> kernels_;  // by launch: call, number of kernels
};

// Makes later executions of the graph skip the tasks of these calls. The graph must not be running.
void DisableTasks(Device& device, aclmdlRI graph, const CallTasks& tasks,
                  const std::vector<int64_t>& calls);

}  // namespace acltape::replayer
