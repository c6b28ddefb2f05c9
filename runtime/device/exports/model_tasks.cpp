// Looking into captured models and changing them (section 20 of the rules).
#include <algorithm>
#include <cstring>

#include "runtime/device/call.h"
#include "runtime/device/changes.h"

using namespace acltape::device;

namespace {

// COND-13; models that are still captured have no final lists yet.
aclError CheckInspectable(const Model& model, const char* call) {
  if (model.state() == Model::State::kCapturing) {
    return Fail(ACL_ERROR_RT_MODEL_CAPTURED,
                "%s: model %u is being captured; end the capture first", call, model.id());
  }
  if (model.kind() == Model::Kind::kCaptured) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
              "%s: model %u is %s; only captured models have this", call, model.id(),
              model.kind() == Model::Kind::kSubGraph ? "a sub-graph" : "built without capture");
}

aclError FindInspectable(aclmdlRI handle, const char* call, Model** model) {
  if (handle == nullptr) return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: the model is NULL", call);
  ACLTAPE_RETURN_IF_FAILED(FindModel(handle, call, model));
  return CheckInspectable(**model, call);
}

aclError FindTask(aclmdlRITask handle, const void* output, const char* call, Model::Node** task) {
  if (handle == nullptr || output == nullptr) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: the task or the output is NULL", call);
  }
  *task = ObjectOf<Model::Node>(handle, HandleKind::kModelTask);
  if (*task != nullptr) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_INVALID_HANDLE, "%s: %p is not a task, or its model was destroyed", call,
              handle);
}

// ENUM-01, ENUM-02: `handle_of(i)` makes the handle of the i-th of `total`.
template <typename HandleOfIndex>
aclError List(size_t total, void** array, uint32_t* count, const char* call,
              HandleOfIndex handle_of) {
  if (array == nullptr) {
    *count = static_cast<uint32_t>(total);
    return ACL_SUCCESS;
  }
  size_t capacity = *count;
  size_t written = std::min(capacity, total);
  for (size_t i = 0; i < written; ++i) {
    array[i] = handle_of(i);
    if (array[i] == nullptr) {
      return Fail(ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, "%s: no handle left", call);
    }
  }
  *count = static_cast<uint32_t>(written);
  if (capacity < total || capacity == 0) {
    return Fail(ACL_ERROR_RT_INSUFFICIENT_INPUT_ARRAY, "%s: the array has room for %zu of %zu",
                call, capacity, total);
  }
  std::fill(array + written, array + capacity, nullptr);
  return ACL_SUCCESS;
}

}  // namespace

aclError aclmdlRIGetStreams(aclmdlRI modelRI, aclrtStream* streams, uint32_t* numStreams) {
  ACLTAPE_CALL("aclmdlRIGetStreams");
  if (numStreams == nullptr) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: numStreams is NULL", kCall);
  }
  Model* model = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindInspectable(modelRI, kCall, &model));
  return List(model->hidden_streams.size(), streams, numStreams, kCall,
              [&](size_t i) { return HandleOf(model->hidden_streams[i]); });
}

aclError aclmdlRIGetTasksByStream(aclrtStream stream, aclmdlRITask* tasks, uint32_t* numTasks) {
  ACLTAPE_CALL("aclmdlRIGetTasksByStream");
  auto* hidden = ObjectOf<Model::HiddenStream>(stream, HandleKind::kHiddenStream);
  if (hidden == nullptr || numTasks == nullptr) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %s", kCall,
                numTasks == nullptr ? "numTasks is NULL"
                                    : "the stream is none that aclmdlRIGetStreams gave");
  }
  Model& model = *hidden->model;
  return List(hidden->nodes.size(), tasks, numTasks, kCall,
              [&](size_t i) { return HandleOf(model.nodes[hidden->nodes[i]]); });
}

aclError aclmdlRITaskGetType(aclmdlRITask task, aclmdlRITaskType* type) {
  ACLTAPE_CALL("aclmdlRITaskGetType");
  Model::Node* node = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindTask(task, type, kCall, &node));
  *type = TypeOf(*node);
  return ACL_SUCCESS;
}

aclError aclmdlRITaskGetSeqId(aclmdlRITask task, uint32_t* id) {
  ACLTAPE_CALL("aclmdlRITaskGetSeqId");
  Model::Node* node = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindTask(task, id, kCall, &node));
  *id = node->sequence;
  return ACL_SUCCESS;
}

aclError aclmdlRITaskGetParams(aclmdlRITask task, aclmdlRITaskParams* params) {
  ACLTAPE_CALL("aclmdlRITaskGetParams");
  Model::Node* node = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindTask(task, params, kCall, &node));
  return GetParams(*node, params);
}

aclError aclmdlRITaskSetParams(aclmdlRITask task, aclmdlRITaskParams* params) {
  ACLTAPE_CALL("aclmdlRITaskSetParams");
  Model::Node* node = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindTask(task, params, kCall, &node));
  return SetParams(*node, *params);
}

aclError aclmdlRITaskDisable(aclmdlRITask task) {
  ACLTAPE_CALL("aclmdlRITaskDisable");
  Model::Node* node = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindTask(task, task, kCall, &node));
  return DisableTask(*node);
}

aclError aclmdlRIUpdate(aclmdlRI modelRI) {
  ACLTAPE_CALL("aclmdlRIUpdate");
  if (modelRI == nullptr) return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: the model is NULL", kCall);
  Model* model = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindModel(modelRI, kCall, &model));
  if (model->kind() != Model::Kind::kCaptured) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "%s: model %u is no captured model of its own",
                kCall, model->id());
  }
  return ApplyChanges(*model);
}

aclError aclmdlRIKernelTaskGetAttribute(aclmdlRITask task, aclrtLaunchKernelAttrId attrId,
                                        aclrtLaunchKernelAttrValue* attrValue) {
  ACLTAPE_CALL("aclmdlRIKernelTaskGetAttribute");
  Model::Node* node = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindTask(task, attrValue, kCall, &node));
  return GetKernelAttribute(*node, attrId, attrValue);
}

aclError aclrtGetFunctionName(aclrtFuncHandle funcHandle, uint32_t maxLen, char* name) {
  ACLTAPE_CALL("aclrtGetFunctionName");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(funcHandle, kCall, "funcHandle"));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(name, kCall, "name"));
  auto* function = ObjectOf<Function>(funcHandle, HandleKind::kFunction);
  if (function == nullptr) {
    return Fail(ACL_ERROR_RT_INVALID_HANDLE, "%s: %p is not a function handle", kCall, funcHandle);
  }
  if (maxLen == 0) return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: maxLen is 0", kCall);
  size_t length = std::min<size_t>(std::strlen(function->name), maxLen - 1);
  std::memcpy(name, function->name, length);
  name[length] = '\0';
  return ACL_SUCCESS;
}
