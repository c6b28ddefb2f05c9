#include "replayer/acl/task.h"

#include "storage/error.h"

namespace acltape::replayer {
namespace {

using Work = AclTask::Work;

aclrtMemcpyKind CopyKind(Work work) {
  switch (work) {
    case Work::kUpload:
      return ACL_MEMCPY_HOST_TO_DEVICE;
    case Work::kDownload:
      return ACL_MEMCPY_DEVICE_TO_HOST;
    default:
      return ACL_MEMCPY_DEVICE_TO_DEVICE;
  }
}

// The addresses of a copy, after the host sides have replaced the task's own.
struct Ends {
  uint8_t* to;
  const uint8_t* from;
};
Ends EndsOf(const AclTask& task, const HostSides& host) {
  Ends ends{task.to, task.from};
  if (task.work == Work::kUpload && host.from != nullptr) ends.from = host.from;
  if (task.work == Work::kDownload && host.to != nullptr) ends.to = host.to;
  return ends;
}

}  // namespace

void IssueTask(const Device& device, aclrtStream stream, const AclTask& task, const HostSides& host,
               const BoundCall::Reserve& reserve) {
  const acl::Api& api = device.api();
  switch (task.work) {
    case Work::kNothing:
      return;
    case Work::kOperator:
      task.bound->Run(device, stream, [&](uint64_t bytes) -> void* {
        return bytes <= task.workspace_bytes ? task.workspace : reserve(bytes);
      });
      return;
    case Work::kFill:
      device.Check(api.aclrtMemsetAsync(task.to, task.bytes, static_cast<int32_t>(task.value),
                                        task.bytes, stream),
                   "aclrtMemsetAsync");
      return;
    case Work::kFill32:
      device.Check(api.aclrtMemsetD32Async(task.to, task.bytes, static_cast<uint32_t>(task.value),
                                           task.bytes / 4, stream),
                   "aclrtMemsetD32Async");
      return;
    case Work::kValueWrite:
      device.Check(api.aclrtValueWrite(task.to, task.value, task.flag, stream), "aclrtValueWrite");
      return;
    default:
      break;
  }
  const Ends ends = EndsOf(task, host);
  if (task.rows != 0) {
    device.Check(api.aclrtMemcpy2dAsync(ends.to, task.to_pitch, ends.from, task.from_pitch,
                                        task.width, task.rows, CopyKind(task.work), stream),
                 "aclrtMemcpy2dAsync");
  } else if (task.bytes != 0) {
    device.Check(api.aclrtMemcpyAsync(ends.to, task.bytes, ends.from, task.bytes,
                                      CopyKind(task.work), stream),
                 "aclrtMemcpyAsync");
  }
}

void RunTaskNow(const Device& device, const AclTask& task, const HostSides& host) {
  const acl::Api& api = device.api();
  if (task.work == Work::kFill) {
    device.Check(api.aclrtMemset(task.to, task.bytes, static_cast<int32_t>(task.value), task.bytes),
                 "aclrtMemset");
    return;
  }
  if (task.work == Work::kFill32) {
    device.Check(
        api.aclrtMemsetD32(task.to, task.bytes, static_cast<uint32_t>(task.value), task.bytes / 4),
        "aclrtMemsetD32");
    return;
  }
  const Ends ends = EndsOf(task, host);
  if (task.rows != 0) {
    device.Check(api.aclrtMemcpy2d(ends.to, task.to_pitch, ends.from, task.from_pitch, task.width,
                                   task.rows, CopyKind(task.work)),
                 "aclrtMemcpy2d");
  } else if (task.bytes != 0) {
    device.Check(api.aclrtMemcpy(ends.to, task.bytes, ends.from, task.bytes, CopyKind(task.work)),
                 "aclrtMemcpy");
  }
}

}  // namespace acltape::replayer
