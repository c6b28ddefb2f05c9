#include "runtime/device/value_task.h"

#include "runtime/device/error.h"
#include "runtime/device/memory.h"

namespace acltape::device {
namespace {

bool ValueReady(void* argument) {
  auto* wait = static_cast<ValuePayload*>(argument);
  uint64_t now = __atomic_load_n(wait->address, __ATOMIC_ACQUIRE);
  switch (wait->flag) {
    case ACL_STREAM_WAIT_VALUE_GEQ:
      return static_cast<int64_t>(now - wait->value) >= 0;
    case ACL_STREAM_WAIT_VALUE_EQ:
      return now == wait->value;
    case ACL_STREAM_WAIT_VALUE_AND:
      return (now & wait->value) != 0;
    default:
      return ~(now | wait->value) != 0;
  }
}

// Note [Memory that is gone].
aclError CheckCell(const ValuePayload& value, const char* task) {
  return CheckTaskMemory(value.address, sizeof(uint64_t), ACL_ERROR_RT_SYS_DMA, task,
                         "its address");
}

aclError RunValueWait(void* argument) {
  const aclError gone = CheckCell(*static_cast<ValuePayload*>(argument), "a wait for a value");
  if (gone != ACL_SUCCESS) return gone;
  return PollUntil(ValueReady, argument, 0) ? ACL_SUCCESS : ACL_ERROR_RT_STREAM_ABORT;
}

aclError RunValueWrite(void* argument) {
  auto* write = static_cast<ValuePayload*>(argument);
  const aclError gone = CheckCell(*write, "a write of a value");
  if (gone != ACL_SUCCESS) return gone;
  __atomic_store_n(write->address, write->value, __ATOMIC_RELEASE);
  return ACL_SUCCESS;
}

}  // namespace

Task ValueWriteTask(void* address, uint64_t value) {
  return MakeTask(TaskKind::kValueWrite, "VALUE_WRITE",
                  ValuePayload{static_cast<uint64_t*>(address), value, 0}, RunValueWrite);
}

Task ValueWaitTask(void* address, uint64_t value, uint32_t flag) {
  Task task = MakeTask(TaskKind::kValueWait, "VALUE_WAIT",
                       ValuePayload{static_cast<uint64_t*>(address), value, flag}, RunValueWait);
  task.ready = ValueReady;
  return task;
}

ValuePayload ValueOf(const Task& task) {
  ValuePayload payload{};
  if (task.inline_payload) std::memcpy(&payload, task.payload, sizeof(payload));
  return payload;
}

aclError CheckValueAddress(const void* address, const char* call) {
  if (address == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, "%s: devAddr is NULL", call);
  if (reinterpret_cast<uintptr_t>(address) % 8 != 0) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: address %p is not aligned to 8 bytes", call,
                address);
  }
  if (!IsDevice(FindMemory(address))) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %p is not device memory", call, address);
  }
  return ACL_SUCCESS;
}

aclError CheckValueComparison(uint32_t flag, const char* call) {
  if (flag <= ACL_STREAM_WAIT_VALUE_NOR) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: there is no comparison %u", call, flag);
}

}  // namespace acltape::device
