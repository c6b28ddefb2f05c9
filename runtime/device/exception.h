// Callbacks about failed tasks (ERR-07).
#pragma once

#include "acl/acl.h"
#include "runtime/device/task.h"

struct rtExceptionInfo {
  uint32_t task_id;
  uint32_t stream_id;
  uint32_t thread_id;  // the thread that submitted the task
  uint32_t device_id;
  uint32_t code;
  acltape::device::Task* task = nullptr;  // the task that failed
};

namespace acltape::device {

// Calls every registered callback, in the calling (worker) thread.
void ReportException(const rtExceptionInfo& info);

}  // namespace acltape::device
