// Execution and destruction of models (section 18 of the rules).
#include "runtime/device/model.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "runtime/device/built_model.h"
#include "runtime/device/call.h"
#include "runtime/device/futex.h"
#include "runtime/device/replay.h"

using namespace acltape::device;

namespace {

constexpr int64_t kDestroyWaitNs = 10 * kSecond;  // EXE-14

aclError CheckNotCaptured(const Model& model, const char* call) {
  if (model.kind() == Model::Kind::kBuilt || model.state() != Model::State::kCapturing) {
    return ACL_SUCCESS;
  }
  return Fail(ACL_ERROR_RT_MODEL_CAPTURED, "%s: model %u is being captured; end the capture first",
              call, model.id());
}

// COND-13.
aclError CheckNoSubGraph(const Model& model, const char* call) {
  if (model.kind() != Model::Kind::kSubGraph) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
              "%s: model %u is a sub-graph, which goes with its parent", call, model.id());
}

// EXE-11, EXE-17.
aclError CheckBuilt(const Model& model, const char* call) {
  if (model.kind() == Model::Kind::kBuilt) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_PARAM_INVALID,
              "%s: model %u was captured, and only models that were built have this", call,
              model.id());
}

}  // namespace

aclError aclmdlRIExecuteAsync(aclmdlRI modelRI, aclrtStream stream) {
  ACLTAPE_CALL("aclmdlRIExecuteAsync");
  Model* model = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindModel(modelRI, kCall, &model));
  ACLTAPE_RETURN_IF_FAILED(CheckNoSubGraph(*model, kCall));
  ACLTAPE_RETURN_IF_FAILED(CheckNotCaptured(*model, kCall));
  Stream* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindStream(stream, kCall, &found));
  if (&model->context() != &found->context()) {
    return Fail(ACL_ERROR_RT_MODEL_CONTEXT, "%s: model %u belongs to another context", kCall,
                model->id());
  }
  ACLTAPE_RETURN_IF_FAILED(CheckNotCapturing(*found, kCall));
  if ((found->flags() & kStreamFlagsWithoutCapture) != 0) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID,
                "%s: stream %u was created with flags 0x%x and cannot execute models", kCall,
                found->id(), found->flags());
  }
  if (found->diverted()) {
    return Fail(ACL_ERROR_RT_TASK_TYPE_NOT_SUPPORT,
                "%s: stream %u has an open task update; end it first", kCall, found->id());
  }
  return LaunchModel(*model, *found, kCall);
}

// EXE-11: on the default stream, and waits for it.
aclError aclmdlRIExecute(aclmdlRI modelRI, int32_t timeout) {
  ACLTAPE_CALL("aclmdlRIExecute");
  Model* model = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindModel(modelRI, kCall, &model));
  ACLTAPE_RETURN_IF_FAILED(CheckTimeout(timeout, kCall));
  ACLTAPE_RETURN_IF_FAILED(CheckBuilt(*model, kCall));
  Stream* stream = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindStream(nullptr, kCall, &stream));
  if (&model->context() != &stream->context()) {
    return Fail(ACL_ERROR_RT_MODEL_CONTEXT, "%s: model %u belongs to another context", kCall,
                model->id());
  }
  ACLTAPE_RETURN_IF_FAILED(LaunchModel(*model, *stream, kCall));
  return stream->Synchronize(TimeoutNs(timeout));
}

aclError aclmdlRIAbort(aclmdlRI modelRI) {
  ACLTAPE_CALL("aclmdlRIAbort");
  Model* model = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindModel(modelRI, kCall, &model));
  ACLTAPE_RETURN_IF_FAILED(CheckBuilt(*model, kCall));
  model->Abort();
  return ACL_SUCCESS;
}

aclError aclmdlRIDestroy(aclmdlRI modelRI) {
  ACLTAPE_CALL("aclmdlRIDestroy");
  if (Exiting() && modelRI != nullptr) return ACL_SUCCESS;
  Model* model = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindModel(modelRI, kCall, &model));
  // EXE-13: a model that the current context does not know. Without a context, in a late
  // destructor, every model is known.
  Context* context = CurrentContext(nullptr);
  if (context != nullptr && context != &model->context()) return ACL_SUCCESS;
  ACLTAPE_RETURN_IF_FAILED(CheckNoSubGraph(*model, kCall));
  ACLTAPE_RETURN_IF_FAILED(CheckNotCaptured(*model, kCall));
  int64_t limit = NowNs() + kDestroyWaitNs;
  while (model->Running()) {
    if (NowNs() >= limit) {
      return Fail(ACL_ERROR_RT_MODEL_RUNNING,
                  "%s: model %u is still running after 10 s; synchronise its stream and try again",
                  kCall, model->id());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  if (!Claim(*model->handle(), HandleKind::kModel)) return BeingDestroyed(kCall, "model");
  // An execution that another thread began before the claim ends first.
  model->Refuse();
  while (model->Running() && !Exiting()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  UnbindAll(*model);
  std::vector<Model::DestroyCallback> callbacks;
  {
    std::lock_guard lock(model->context().mutex);
    model->context().models.erase(model);
    callbacks.swap(model->destroy_callbacks);
  }
  for (const Model::DestroyCallback& callback : callbacks) callback.function(callback.user_data);
  FreeClaimed<Model>(model, [](Model* freed) { delete freed; });
  return ACL_SUCCESS;
}

aclError aclmdlRIDestroyRegisterCallback(aclmdlRI modelRI, aclrtCallback func, void* userData) {
  ACLTAPE_CALL("aclmdlRIDestroyRegisterCallback");
  if (modelRI == nullptr || func == nullptr) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: the model or the function is NULL", kCall);
  }
  Model* model = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindModel(modelRI, kCall, &model));
  ACLTAPE_RETURN_IF_FAILED(CheckNoSubGraph(*model, kCall));
  std::lock_guard lock(model->context().mutex);
  for (const Model::DestroyCallback& callback : model->destroy_callbacks) {
    if (callback.function == func) {
      return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: the function is registered already", kCall);
    }
  }
  model->destroy_callbacks.push_back({func, userData});
  return ACL_SUCCESS;
}

aclError aclmdlRIDestroyUnregisterCallback(aclmdlRI modelRI, aclrtCallback func) {
  ACLTAPE_CALL("aclmdlRIDestroyUnregisterCallback");
  if (modelRI == nullptr || func == nullptr) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: the model or the function is NULL", kCall);
  }
  Model* model = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindModel(modelRI, kCall, &model));
  ACLTAPE_RETURN_IF_FAILED(CheckNoSubGraph(*model, kCall));
  std::lock_guard lock(model->context().mutex);
  auto removed = std::erase_if(model->destroy_callbacks, [&](const Model::DestroyCallback& row) {
    return row.function == func;
  });
  if (removed != 0) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: the function is not registered", kCall);
}

aclError aclmdlRISetName(aclmdlRI modelRI, const char* name) {
  ACLTAPE_CALL("aclmdlRISetName");
  Model* model = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindModel(modelRI, kCall, &model));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(name, kCall, "name"));
  std::lock_guard lock(model->context().mutex);
  std::strncpy(model->name, name, Model::kNameBytes);
  model->name[Model::kNameBytes] = '\0';
  return ACL_SUCCESS;
}

aclError aclmdlRIGetName(aclmdlRI modelRI, uint32_t maxLen, char* name) {
  ACLTAPE_CALL("aclmdlRIGetName");
  Model* model = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindModel(modelRI, kCall, &model));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(name, kCall, "name"));
  if (maxLen == 0) return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: maxLen is 0", kCall);
  std::lock_guard lock(model->context().mutex);
  size_t length = std::min<size_t>(std::strlen(model->name), maxLen - 1);
  std::memcpy(name, model->name, length);
  name[length] = '\0';
  return ACL_SUCCESS;
}

aclError aclmdlRIGetId(aclmdlRI modelRI, uint32_t* modelRIId) {
  ACLTAPE_CALL("aclmdlRIGetId");
  Model* model = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindModel(modelRI, kCall, &model));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(modelRIId, kCall, "modelRIId"));
  *modelRIId = model->id();
  return ACL_SUCCESS;
}
