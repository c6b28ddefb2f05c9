// Value writes and waits (STR-21): their tasks, which a captured model also shows and changes.
#pragma once

#include "runtime/device/task.h"

namespace acltape::device {

struct ValuePayload {
  uint64_t* address;
  uint64_t value;
  uint32_t flag;  // the comparison of a wait
};

Task ValueWriteTask(void* address, uint64_t value);
Task ValueWaitTask(void* address, uint64_t value, uint32_t flag);

// The address and the value of such a task; zeros when a fault on purpose has wrapped it (fault.h).
ValuePayload ValueOf(const Task& task);

// 107000 unless it is 8 byte aligned device memory; NULL gives 100000.
aclError CheckValueAddress(const void* address, const char* call);
aclError CheckValueComparison(uint32_t flag, const char* call);

}  // namespace acltape::device
