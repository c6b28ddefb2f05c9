// Graph capture (sections 12 to 15 of the rules).
#include "runtime/device/capture/capture.h"

#include "runtime/device/call.h"

using namespace acltape::device;

namespace {

aclError CheckMode(aclmdlRICaptureMode mode, const char* call) {
  if (static_cast<uint32_t>(mode) <= ACL_MODEL_RI_CAPTURE_MODE_RELAXED) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: mode %u is not 0, 1 or 2", call,
              static_cast<uint32_t>(mode));
}

}  // namespace

aclError aclmdlRICaptureBegin(aclrtStream stream, aclmdlRICaptureMode mode) {
  ACLTAPE_CALL("aclmdlRICaptureBegin");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(stream, kCall, "stream"));
  ACLTAPE_RETURN_IF_FAILED(CheckMode(mode, kCall));
  Stream* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindStream(stream, kCall, &found));
  return BeginCapture(*found, nullptr, static_cast<uint32_t>(mode), kCall);
}

// COND-10.
aclError aclmdlRICaptureToModelRIBegin(aclrtStream stream, aclmdlRI modelRI,
                                       aclmdlRICaptureMode mode) {
  ACLTAPE_CALL("aclmdlRICaptureToModelRIBegin");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(stream, kCall, "stream"));
  Model* model = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindModel(modelRI, kCall, &model));
  ACLTAPE_RETURN_IF_FAILED(CheckMode(mode, kCall));
  if (model->kind() != Model::Kind::kSubGraph) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID,
                "%s: model %u is no sub-graph of a conditional task; begin with "
                "aclmdlRICaptureBegin",
                kCall, model->id());
  }
  Stream* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindStream(stream, kCall, &found));
  return BeginCapture(*found, model, static_cast<uint32_t>(mode), kCall);
}

// CAP-06, CAP-09: two loads.
aclError aclmdlRICaptureGetInfo(aclrtStream stream, aclmdlRICaptureStatus* status,
                                aclmdlRI* modelRI) {
  ACLTAPE_CALL("aclmdlRICaptureGetInfo");
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
  ACLTAPE_CALL("aclmdlRICaptureEnd");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(stream, kCall, "stream"));
  Stream* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindAnyStream(stream, kCall, &found));
  if (modelRI != nullptr) *modelRI = nullptr;
  Model* model = nullptr;
  ACLTAPE_RETURN_IF_FAILED(EndCapture(*found, modelRI != nullptr, &model));
  if (modelRI != nullptr) *modelRI = model->handle();
  return ACL_SUCCESS;
}

aclError aclmdlRICaptureThreadExchangeMode(aclmdlRICaptureMode* mode) {
  ACLTAPE_CALL("aclmdlRICaptureThreadExchangeMode");
  return ExchangeCaptureMode(mode);
}
