// Which tasks of a captured graph come from which call, and leaving some of them out (rules ENUM-01
// to ENUM-16).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "replayer/device.h"

namespace acltape::replayer {

// Tasks of a graph by call, in order of capture.
using CallTasks = std::map<int64_t, std::vector<aclmdlRITask>>;

// A graph tells its tasks only when its capture has ended, and then not where they come from. So
// each launch is captured alone first, which tells how many kernels it is; kernels of the whole
// graph are counted off in the order of capture. Throws Error kDevice when the device library
// cannot list tasks, or when a launch is more than kernels (a copy cannot be disabled).
class GraphTaskRecorder {
 public:
  explicit GraphTaskRecorder(Device& device);
  // `launch` puts the call on the device's own stream. Not while anything is being captured; in the
  // order in which the graph will hold the calls.
  void Add(int64_t call_id, const std::function<void()>& launch);
  // Of the graph that holds all that was added.
  CallTasks TasksOf(aclmdlRI graph) const;

 private:
  Device& device_;
  std::vector<std::pair<int64_t, size_t>> kernels_;  // by launch: call, number of kernels
};

// From now on executions of the graph skip the tasks of these calls. The graph must not be running.
void DisableTasks(Device& device, aclmdlRI graph, const CallTasks& tasks,
                  const std::vector<int64_t>& calls);

}  // namespace acltape::replayer
