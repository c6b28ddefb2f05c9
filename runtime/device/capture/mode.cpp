#include "runtime/device/capture/mode.h"

#include <algorithm>

#include "runtime/device/capture/capture.h"
#include "runtime/device/error.h"
#include "runtime/device/thread_state.h"

namespace acltape::device {
namespace {

constexpr uint32_t kGlobal = ACL_MODEL_RI_CAPTURE_MODE_GLOBAL;
constexpr uint32_t kThreadLocal = ACL_MODEL_RI_CAPTURE_MODE_THREAD_LOCAL;
constexpr uint32_t kRelaxed = ACL_MODEL_RI_CAPTURE_MODE_RELAXED;

// A smaller mode is stricter (CAP-31).
struct StrictestModes {
  uint32_t context = kRelaxed;  // C: of all captures in the context
  uint32_t thread = kRelaxed;   // T: of captures that this thread began
};

StrictestModes ModesOfActiveCaptures(const Context& context) {
  StrictestModes modes;
  std::lock_guard lock(CaptureLock());
  for (const Model* capture : ActiveCaptures()) {
    if (&capture->context() == &context) modes.context = std::min(modes.context, capture->mode);
    if (capture->thread == ThreadNumber()) modes.thread = std::min(modes.thread, capture->mode);
  }
  return modes;
}

}  // namespace

bool UnsafeCallRefused(const Context& context) {
  if (!AnyActiveCapture()) return false;
  StrictestModes modes = ModesOfActiveCaptures(context);
  switch (thread_state.exchange_mode) {
    case kGlobal:
      return modes.context == kGlobal || modes.thread == kThreadLocal;
    case kThreadLocal:
      return modes.thread == kGlobal || modes.thread == kThreadLocal;
    default:
      return false;
  }
}

aclError CheckSynchronousCall(const Context& context, const char* call) {
  if (!UnsafeCallRefused(context)) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_CAPTURE_MODE_NOT_SUPPORT,
              "%s: a running capture refuses synchronous copies and fills; exchange the thread's "
              "capture mode to RELAXED around the call, or use the asynchronous form",
              call);
}

aclError ExchangeCaptureMode(aclmdlRICaptureMode* mode) {
  constexpr const char* kCall = "aclmdlRICaptureThreadExchangeMode";
  if (mode == nullptr) return Fail(ACL_ERROR_INVALID_PARAM, "%s: the mode is NULL", kCall);
  auto wanted = static_cast<uint32_t>(*mode);
  if (wanted > kRelaxed) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: mode %u is not 0, 1 or 2", kCall, wanted);
  }
  if (CurrentContext(kCall) == nullptr) return ACL_ERROR_RT_CONTEXT_NULL;
  *mode = static_cast<aclmdlRICaptureMode>(thread_state.exchange_mode);
  thread_state.exchange_mode = wanted;
  return ACL_SUCCESS;
}

}  // namespace acltape::device
