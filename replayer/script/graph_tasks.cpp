#include "replayer/script/graph_tasks.h"

#include <algorithm>
#include <string>

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

uint32_t CountOf(const Device& device, aclrtStream stream) {
  uint32_t count = 0;
  device.Check(device.api().aclmdlRIGetTasksByStream(stream, nullptr, &count),
               "aclmdlRIGetTasksByStream");
  return count;
}

}  // namespace

GraphTaskRecorder::GraphTaskRecorder(Device& device) : device_(device) {
  const acl::Api& api = device.api();
  if (api.aclmdlRICaptureGetInfo == nullptr || api.aclmdlRIGetStreams == nullptr ||
      api.aclmdlRIGetTasksByStream == nullptr || api.aclmdlRITaskGetSeqId == nullptr ||
      api.aclmdlRITaskDisable == nullptr || api.aclmdlRIUpdate == nullptr) {
    throw Error(ErrorKind::kDevice,
                "the device library cannot list and disable the tasks of a graph; leave out the "
                "in-graph variant");
  }
  aclmdlRICaptureStatus status{};
  device.Check(api.aclmdlRICaptureGetInfo(device.stream(), &status, &graph_),
               "aclmdlRICaptureGetInfo");
}

size_t GraphTaskRecorder::CountTasks() const {
  size_t count = 0;
  for (const aclrtStream stream : StreamsOf(device_, graph_)) count += CountOf(device_, stream);
  return count;
}

void GraphTaskRecorder::Before(int64_t call_id) {
  const size_t count = CountTasks();
  spans_.push_back({call_id, count, count});
}

void GraphTaskRecorder::After() { spans_.back().end = CountTasks(); }

CallTasks GraphTaskRecorder::TasksOf(aclmdlRI graph) const {
  struct Numbered {
    uint32_t number = 0;  // grows in order of capture over all streams (rule ENUM-07)
    aclmdlRITask task = nullptr;
  };
  std::vector<Numbered> all;
  for (const aclrtStream stream : StreamsOf(device_, graph)) {
    uint32_t count = CountOf(device_, stream);
    if (count == 0) continue;
    std::vector<aclmdlRITask> tasks(count);
    device_.Check(device_.api().aclmdlRIGetTasksByStream(stream, tasks.data(), &count),
                  "aclmdlRIGetTasksByStream");
    for (const aclmdlRITask task : tasks) {
      all.push_back({0, task});
      device_.Check(device_.api().aclmdlRITaskGetSeqId(task, &all.back().number),
                    "aclmdlRITaskGetSeqId");
    }
  }
  std::sort(all.begin(), all.end(),
            [](const Numbered& a, const Numbered& b) { return a.number < b.number; });
  CallTasks tasks;
  for (const Span& span : spans_) {
    for (size_t i = span.first; i < std::min(span.end, all.size()); ++i) {
      tasks[span.call_id].push_back(all[i].task);
    }
  }
  return tasks;
}

void DisableTasks(Device& device, aclmdlRI graph, const CallTasks& tasks,
                  const std::vector<int64_t>& calls) {
  const acl::Api& api = device.api();
  device.Synchronize();
  for (const int64_t call : calls) {
    const auto found = tasks.find(call);
    if (found == tasks.end()) continue;
    for (const aclmdlRITask task : found->second) {
      aclmdlRITaskType type{};
      device.Check(api.aclmdlRITaskGetType(task, &type), "aclmdlRITaskGetType");
      if (type == ACL_MODEL_RI_TASK_DEFAULT) {
        throw Error(ErrorKind::kDevice, "call " + std::to_string(call) +
                                            " has a task that cannot be disabled in a graph; "
                                            "leave out the in-graph variant");
      }
      device.Check(api.aclmdlRITaskDisable(task), "aclmdlRITaskDisable");
    }
  }
  device.Check(api.aclmdlRIUpdate(graph), "aclmdlRIUpdate");
}

}  // namespace acltape::replayer
