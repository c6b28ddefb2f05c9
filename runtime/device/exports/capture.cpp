// Graph capture (sections 12 to 15 of the rules).
#include "runtime/device/capture/capture.h"

#include "runtime/device/call.h"

using namespace acltape::device;

aclError aclmdlRICaptureBegin(aclrtStream stream, aclmdlRICaptureMode mode) {
  constexpr const char* kCall = "aclmdlRICaptureBegin";
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(stream, kCall, "stream"));
  if (static_cast<uint32_t>(mode) > ACL_MODEL_RI_CAPTURE_MODE_RELAXED) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: mode %u is not 0, 1 or 2", kCall,
                static_cast<uint32_t>(mode));
  }
  Stream* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindStream(stream, kCall, &found));
  return BeginCapture(*found, static_cast<uint32_t>(mode));
}

// CAP-06, CAP-09: two loads.
aclError aclmdlRICaptureGetInfo(aclrtStream stream, aclmdlRICaptureStatus* status,
                                aclmdlRI* modelRI) {
  constexpr const char* kCall = "aclmdlRICaptureGetInfo";
  if (status == nullptr && modelRI == nullptr) {
    return Fail(ACL_ERROR_INVALID_PARAM, "%s: both outputs are NULL", kCall);
  }
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(stream, kCall, "stream"));
  Stream* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindAnyStream(stream, kCall, &found));
  uint32_t now = found->capture_status.load(std::memory_order_acquire);
  if (status != nullptr) *status = static_cast<aclmdlRICaptureStatus>(now);
  if (modelRI != nullptr) {
    *modelRI = now == ACL_MODEL_RI_CAPTURE_STATUS_NONE
                   ? nullptr
                   : found->capture_handle.load(std::memory_order_acquire);
  }
  return ACL_SUCCESS;
}

aclError aclmdlRICaptureEnd(aclrtStream stream, aclmdlRI* modelRI) {
  constexpr const char* kCall = "aclmdlRICaptureEnd";
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(stream, kCall, "stream"));
  if (modelRI == nullptr) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: modelRI is NULL", kCall);
  }
  Stream* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindAnyStream(stream, kCall, &found));
  *modelRI = nullptr;
  Model* model = nullptr;
  ACLTAPE_RETURN_IF_FAILED(EndCapture(*found, &model));
  *modelRI = model->handle();
  return ACL_SUCCESS;
}

aclError aclmdlRICaptureThreadExchangeMode(aclmdlRICaptureMode* mode) {
  return ExchangeCaptureMode(mode);
}
