// Results that no number of their type can hold (OVF-01, OVF-03) are infinite or NaN, or they
// saturate. The mode of a device holds for streams that are created later. The
// operator library asks for it at each launch (runtime/kernel_launch.h) and changes the results.
#include <cstring>

#include "runtime/device/call.h"
#include "runtime/device/memory.h"
#include "runtime/kernel_launch.h"

using namespace acltape::device;

namespace {

constexpr size_t kOverflowStatusBytes = 64;

// True once a program has chosen to saturate on some device.
std::atomic<bool> any_saturates{false};

struct StatusPayload {
  void* status;
  Device* device;
};

aclError RunStatus(void* argument) {
  const auto& payload = *static_cast<StatusPayload*>(argument);
  ACLTAPE_RETURN_IF_FAILED(CheckTaskMemory(payload.status, kOverflowStatusBytes,
                                           ACL_ERROR_RT_AICPU_EXCEPTION, "OVERFLOW_STATUS",
                                           "outputAddr"));
  const uint32_t overflowed = __atomic_load_n(&payload.device->overflowed, __ATOMIC_ACQUIRE);
  std::memset(payload.status, 0, kOverflowStatusBytes);
  std::memcpy(payload.status, &overflowed, sizeof overflowed);
  return ACL_SUCCESS;
}

aclError RunReset(void* argument) {
  __atomic_store_n(&static_cast<StatusPayload*>(argument)->device->overflowed, 0, __ATOMIC_RELEASE);
  return ACL_SUCCESS;
}

}  // namespace

bool SoftSaturates(void) { return any_saturates.load(std::memory_order_relaxed); }

SoftSaturation SoftSaturationOf(aclrtStream stream) {
  Stream* found = nullptr;
  if (FindStream(stream, "SoftSaturationOf", &found) != ACL_SUCCESS || !found->saturates()) {
    return {false, nullptr};
  }
  const bool detects = found->overflow_switch.load() != 0;
  return {true, detects ? &found->context().device().overflowed : nullptr};
}

aclError aclrtSetDeviceSatMode(aclrtFloatOverflowMode mode) {
  ACLTAPE_CALL("aclrtSetDeviceSatMode");
  if (mode != ACL_RT_OVERFLOW_MODE_INFNAN && mode != ACL_RT_OVERFLOW_MODE_SATURATION) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: there is no mode %d", kCall,
                static_cast<int>(mode));
  }
  Context* context = CurrentContext(kCall);
  if (context == nullptr) return ACL_ERROR_RT_CONTEXT_NULL;
  const bool saturates = mode == ACL_RT_OVERFLOW_MODE_SATURATION;
  context->device().saturates.store(saturates);
  if (saturates) any_saturates.store(true);
  return ACL_SUCCESS;
}

aclError aclrtGetDeviceSatMode(aclrtFloatOverflowMode* mode) {
  ACLTAPE_CALL("aclrtGetDeviceSatMode");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(mode, kCall, "mode"));
  Context* context = CurrentContext(kCall);
  if (context == nullptr) return ACL_ERROR_RT_CONTEXT_NULL;
  *mode = context->device().saturates.load() ? ACL_RT_OVERFLOW_MODE_SATURATION
                                             : ACL_RT_OVERFLOW_MODE_INFNAN;
  return ACL_SUCCESS;
}

aclError aclrtGetOverflowStatus(void* outputAddr, size_t outputSize, aclrtStream stream) {
  ACLTAPE_CALL("aclrtGetOverflowStatus");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(outputAddr, kCall, "outputAddr"));
  if (outputSize != kOverflowStatusBytes) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: the status has %zu bytes, not %zu", kCall,
                kOverflowStatusBytes, outputSize);
  }
  ACLTAPE_RETURN_IF_FAILED(CheckMemory(outputAddr, outputSize, kCall, "outputAddr"));
  Stream* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindStream(stream, kCall, &found));
  return SubmitTask(*found,
                    MakeTask(TaskKind::kInternal, "OVERFLOW_STATUS",
                             StatusPayload{outputAddr, &found->context().device()}, RunStatus));
}

aclError aclrtResetOverflowStatus(aclrtStream stream) {
  ACLTAPE_CALL("aclrtResetOverflowStatus");
  Stream* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindStream(stream, kCall, &found));
  return SubmitTask(*found, MakeTask(TaskKind::kInternal, "OVERFLOW_RESET",
                                     StatusPayload{nullptr, &found->context().device()}, RunReset));
}

// OVF-01: the switch of a stream holds for later tasks.
aclError aclrtSetStreamOverflowSwitch(aclrtStream stream, uint32_t flag) {
  ACLTAPE_CALL("aclrtSetStreamOverflowSwitch");
  if (flag > 1) return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: flag %u is not 0 or 1", kCall, flag);
  Stream* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindStream(stream, kCall, &found));
  ACLTAPE_RETURN_IF_FAILED(CheckNotCapturing(*found, kCall));
  found->overflow_switch.store(flag);
  return ACL_SUCCESS;
}

aclError aclrtGetStreamOverflowSwitch(aclrtStream stream, uint32_t* flag) {
  ACLTAPE_CALL("aclrtGetStreamOverflowSwitch");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(flag, kCall, "flag"));
  Stream* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindStream(stream, kCall, &found));
  *flag = found->overflow_switch.load();
  return ACL_SUCCESS;
}
