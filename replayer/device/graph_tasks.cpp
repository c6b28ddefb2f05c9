#include "replayer/device/graph_tasks.h"

#include <algorithm>
#include <string>

#include "replayer/device/captured_graph.h"

namespace acltape::replayer {
namespace {

std::vector<aclrtStream> StreamsOf(const Device& device, aclmdlRI graph) {
  uint32_t count = 0;
  device.Check(device.api().aclmdlRIGetStreams(graph, nullptr, &count), "aclmdlRIGetStreams");
  std::vector<aclrtStream> streams(count);
  if (count == 0) return streams;
  device.Check(device.api().aclmdlRIGetStreams(graph, streams.data(), &count),
               "aclmdlRIGetStreams");
  return streams;
}

// The tasks of a graph by type, in order of capture over all streams (rule ENUM-07).
struct TaskList {
  std::vector<aclmdlRITask> kernels;
  bool has_default = false;  // the graph has copies or similar tasks
};

TaskList ListTasks(const Device& device, aclmdlRI graph) {
  const acl::Api& api = device.api();
  std::vector<std::pair<uint32_t, aclmdlRITask>> kernels;
  TaskList list;
  for (const aclrtStream stream : StreamsOf(device, graph)) {
    uint32_t count = 0;
    device.Check(api.aclmdlRIGetTasksByStream(stream, nullptr, &count), "aclmdlRIGetTasksByStream");
    if (count == 0) continue;
    std::vector<aclmdlRITask> tasks(count);
    device.Check(api.aclmdlRIGetTasksByStream(stream, tasks.data(), &count),
                 "aclmdlRIGetTasksByStream");
    for (const aclmdlRITask task : tasks) {
      aclmdlRITaskType type{};
      device.Check(api.aclmdlRITaskGetType(task, &type), "aclmdlRITaskGetType");
      list.has_default = list.has_default || type == ACL_MODEL_RI_TASK_DEFAULT;
      if (type != ACL_MODEL_RI_TASK_KERNEL) continue;
      uint32_t number = 0;
      device.Check(api.aclmdlRITaskGetSeqId(task, &number), "aclmdlRITaskGetSeqId");
      kernels.emplace_back(number, task);
    }
  }
  std::sort(kernels.begin(), kernels.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  for (const auto& [number, task] : kernels) list.kernels.push_back(task);
  return list;
}

}  // namespace

GraphTaskRecorder::GraphTaskRecorder(Device& device) : device_(device) {
  const acl::Api& api = device.api();
  if (api.aclmdlRIGetStreams == nullptr || api.aclmdlRIGetTasksByStream == nullptr ||
      api.aclmdlRITaskGetType == nullptr || api.aclmdlRITaskGetSeqId == nullptr ||
      api.aclmdlRITaskDisable == nullptr || api.aclmdlRIUpdate == nullptr) {
    throw Error(ErrorKind::kDevice,
                "the device library cannot list and disable the tasks of a graph; leave out the "
                "in-graph variant");
  }
}

void GraphTaskRecorder::Add(int64_t call_id, const std::function<void()>& launch) {
  const TaskList tasks =
      ListTasks(device_, CaptureWork(device_, device_.stream(), launch).handle());
  if (tasks.has_default) {
    throw Error(ErrorKind::kDevice, "call " + std::to_string(call_id) +
                                        " has a task that cannot be disabled in a graph; leave out "
                                        "the in-graph variant");
  }
  kernels_.emplace_back(call_id, tasks.kernels.size());
}

CallTasks GraphTaskRecorder::TasksOf(aclmdlRI graph) const {
  const TaskList all = ListTasks(device_, graph);
  CallTasks tasks;
  size_t next = 0;
  for (const auto& [call_id, count] : kernels_) {
    for (size_t i = 0; i < count && next < all.kernels.size(); ++i) {
      tasks[call_id].push_back(all.kernels[next++]);
    }
  }
  if (next == all.kernels.size()) return tasks;
  throw Error(ErrorKind::kDevice, "a graph holds " + std::to_string(all.kernels.size()) +
                                      " kernels, its calls " + std::to_string(next) +
                                      " when captured alone; leave out the in-graph variant");
}

void DisableTasks(Device& device, aclmdlRI graph, const CallTasks& tasks,
                  const std::vector<int64_t>& calls) {
  const acl::Api& api = device.api();
  device.Synchronize();
  for (const int64_t call : calls) {
    const auto found = tasks.find(call);
    if (found == tasks.end()) continue;
    for (const aclmdlRITask task : found->second) {
      device.Check(api.aclmdlRITaskDisable(task), "aclmdlRITaskDisable");
    }
  }
  device.Check(api.aclmdlRIUpdate(graph), "aclmdlRIUpdate");
}

}  // namespace acltape::replayer
