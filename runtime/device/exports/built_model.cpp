// Models that are built without capture (section 19 of the rules, STR-23).
#include "runtime/device/built_model.h"

#include "runtime/device/call.h"
#include "runtime/device/memory.h"

using namespace acltape::device;

namespace {

aclError FindModelAndStream(aclmdlRI modelRI, aclrtStream stream, const char* call, Model** model,
                            Stream** found) {
  ACLTAPE_RETURN_IF_FAILED(FindModel(modelRI, call, model));
  return FindGivenStream(stream, call, found);
}

aclError CheckDevicePointer(const void* pointer, const char* call, const char* name) {
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(pointer, call, name));
  if (IsDevice(FindMemory(pointer))) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %s %p is not device memory", call, name, pointer);
}

}  // namespace

// BLD-04.
aclError aclmdlRIBuildBegin(aclmdlRI* modelRI, uint32_t flag) {
  ACLTAPE_CALL("aclmdlRIBuildBegin");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(modelRI, kCall, "modelRI"));
  if (flag != 0) return Fail(ACL_ERROR_INVALID_PARAM, "%s: flag %u is not 0", kCall, flag);
  Context* context = CurrentContext(kCall);
  if (context == nullptr) return ACL_ERROR_RT_CONTEXT_NULL;
  Model* model = nullptr;
  ACLTAPE_RETURN_IF_FAILED(Model::Create(*context, Model::Kind::kBuilt, kCall, &model));
  if (!context->Enter(context->models, model)) {
    delete model;
    return ContextIsReleased(kCall);
  }
  *modelRI = model->handle();
  return ACL_SUCCESS;
}

// BLD-02, BLD-03.
aclError aclmdlRIBindStream(aclmdlRI modelRI, aclrtStream stream, uint32_t flag) {
  ACLTAPE_CALL("aclmdlRIBindStream");
  Model* model = nullptr;
  Stream* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindModelAndStream(modelRI, stream, kCall, &model, &found));
  if (flag != ACL_MODEL_STREAM_FLAG_HEAD && flag != ACL_MODEL_STREAM_FLAG_DEFAULT) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: flag 0x%x is not 0 or 0x7FFFFFFF", kCall, flag);
  }
  return BindStream(*model, *found, flag == ACL_MODEL_STREAM_FLAG_HEAD);
}

aclError aclmdlRIUnbindStream(aclmdlRI modelRI, aclrtStream stream) {
  ACLTAPE_CALL("aclmdlRIUnbindStream");
  Model* model = nullptr;
  Stream* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindModelAndStream(modelRI, stream, kCall, &model, &found));
  return UnbindStream(*model, *found);
}

aclError aclmdlRIEndTask(aclmdlRI modelRI, aclrtStream stream) {
  ACLTAPE_CALL("aclmdlRIEndTask");
  Model* model = nullptr;
  Stream* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindModelAndStream(modelRI, stream, kCall, &model, &found));
  return SubmitEndTask(*model, *found);
}

aclError aclmdlRIBuildEnd(aclmdlRI modelRI, void* reserve) {
  ACLTAPE_CALL("aclmdlRIBuildEnd");
  Model* model = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindModel(modelRI, kCall, &model));
  if (reserve != nullptr) {
    return Fail(ACL_ERROR_INVALID_PARAM, "%s: the reserved argument must be NULL", kCall);
  }
  return EndBuild(*model);
}

aclError aclrtActiveStream(aclrtStream activeStream, aclrtStream stream) {
  ACLTAPE_CALL("aclrtActiveStream");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(activeStream, kCall, "activeStream"));
  Stream* activated = nullptr;
  Stream* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindStream(activeStream, kCall, &activated));
  ACLTAPE_RETURN_IF_FAILED(FindGivenStream(stream, kCall, &found));
  return ActivateStream(*activated, *found);
}

aclError aclrtSwitchStream(void* leftValue, aclrtCondition cond, void* rightValue,
                           aclrtCompareDataType dataType, aclrtStream trueStream,
                           aclrtStream falseStream, aclrtStream stream) {
  ACLTAPE_CALL("aclrtSwitchStream");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(trueStream, kCall, "trueStream"));
  Stream* found = nullptr;
  Stream* if_true = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindGivenStream(stream, kCall, &found));
  ACLTAPE_RETURN_IF_FAILED(FindStream(trueStream, kCall, &if_true));
  if (falseStream != nullptr) {
    return Fail(ACL_ERROR_INVALID_PARAM, "%s: falseStream is reserved and must be NULL", kCall);
  }
  ACLTAPE_RETURN_IF_FAILED(CheckDevicePointer(leftValue, kCall, "leftValue"));
  ACLTAPE_RETURN_IF_FAILED(CheckDevicePointer(rightValue, kCall, "rightValue"));
  if (cond > ACL_RT_LESS_OR_EQUAL || dataType > ACL_RT_SWITCH_INT64) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: there is no condition %d of type %d", kCall,
                static_cast<int>(cond), static_cast<int>(dataType));
  }
  return SwitchStream({leftValue, rightValue, cond, dataType}, *if_true, *found);
}
