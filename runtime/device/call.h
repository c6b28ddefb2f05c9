// Checks that many exported functions make, each with its message.
#pragma once

#include "runtime/device/capture/capture.h"
#include "runtime/device/capture/mode.h"
#include "runtime/device/context.h"
#include "runtime/device/error.h"
#include "runtime/device/fault.h"
#include "runtime/device/initialised.h"
#include "runtime/device/model.h"
#include "runtime/device/profile.h"
#include "runtime/device/profiling_session.h"

namespace acltape::device {

inline constexpr int64_t kMillisecond = 1000000;
inline constexpr int64_t kSecond = 1000000000;

// GEN-02: a NULL output or object pointer gives 100000.
inline aclError CheckPointer(const void* pointer, const char* call, const char* name) {
  if (pointer != nullptr) return ACL_SUCCESS;
  return Fail(ACL_ERROR_INVALID_PARAM, "%s: %s is NULL", call, name);
}

// CAP-62: calls that a capturing stream refuses, without harm to the capture.
inline aclError CheckNotCapturing(const Stream& stream, const char* call) {
  if (!stream.capturing()) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_STREAM_CAPTURED,
              "%s: stream %u is capturing; call it before the capture begins or after it has ended",
              call, stream.id());
}

// -1 waits for ever; 0 and below -1 are refused (DEV-11, STR-13, EVT-13).
inline aclError CheckTimeout(int32_t timeout_ms, const char* call) {
  if (timeout_ms > 0 || timeout_ms == -1) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: time-out %d ms is neither positive nor -1", call,
              timeout_ms);
}

inline int64_t TimeoutNs(int32_t timeout_ms) {
  return timeout_ms < 0 ? -1 : int64_t{timeout_ms} * kMillisecond;
}

// Like FindStream for calls that do not mean the default stream by NULL: it gives 100000 there.
inline aclError FindGivenStream(aclrtStream handle, const char* call, Stream** stream) {
  if (aclError code = CheckPointer(handle, call, "stream"); code != ACL_SUCCESS) return code;
  return FindStream(handle, call, stream);
}

inline aclError FindModel(aclmdlRI handle, const char* call, Model** model) {
  if (aclError code = CheckPointer(handle, call, "the model"); code != ACL_SUCCESS) return code;
  *model = ObjectOf<Model>(handle, HandleKind::kModel);
  if (*model != nullptr) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_INVALID_HANDLE, "%s: %p is not a live model", call, handle);
}

// Note [Objects in use] in handle.h.
inline aclError BeingDestroyed(const char* call, const char* kind) {
  return Fail(ACL_ERROR_RT_INVALID_HANDLE, "%s: another call is destroying the %s", call, kind);
}
inline aclError ContextIsReleased(const char* call) {
  return Fail(ACL_ERROR_RT_CONTEXT_NULL, "%s: another call is releasing the context", call);
}

// Submits or captures a task of the program, with the faults for its name.
inline aclError SubmitTask(Stream& stream, Task&& task) {
  if (!GetProfile().computes && IsComputation(task.kind)) [[unlikely]]
    task.run = ComputeNothing;
  if (FaultsGiven()) [[unlikely]]
    return SubmitOrCapture(stream, WithFaults(std::move(task)));
  return SubmitOrCapture(stream, std::move(task));
}

// Finds the stream of a call that submits a task, and submits or captures the task.
template <typename Payload>
aclError SubmitPayload(aclrtStream handle, const char* call, TaskKind kind, const char* name,
                       const Payload& payload, aclError (*run)(void*)) {
  Stream* stream = nullptr;
  if (aclError code = FindStream(handle, call, &stream); code != ACL_SUCCESS) return code;
  return SubmitTask(*stream, MakeTask(kind, name, payload, run));
}

}  // namespace acltape::device

// Returns the code of an expression that is not success.
#define ACLTAPE_RETURN_IF_FAILED(expression)                               \
  do {                                                                     \
    if (aclError code_ = (expression); code_ != ACL_SUCCESS) return code_; \
  } while (false)

// Returns the code that a fault injects into the interface function of this name, or that it has
// after the last aclFinalize.
#define ACLTAPE_RETURN_IF_REFUSED(call)                                       \
  do {                                                                        \
    if (::acltape::device::FaultsGiven()) [[unlikely]]                        \
      ACLTAPE_RETURN_IF_FAILED(::acltape::device::InjectedFault(call));       \
    if (::acltape::device::Finalized()) [[unlikely]]                          \
      ACLTAPE_RETURN_IF_FAILED(::acltape::device::RefuseAfterFinalize(call)); \
  } while (false)

// Begins an interface function: names it for messages and refuses it where it may not run.
#define ACLTAPE_CALL(name)                                \
  constexpr const char* kCall = (name);                   \
  const ::acltape::device::ProfiledCall profiled_(kCall); \
  const ::acltape::device::InterfaceCall in_call_;        \
  ACLTAPE_RETURN_IF_REFUSED(kCall)
