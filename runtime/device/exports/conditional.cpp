// Conditional tasks (section 21 of the rules).
#include "runtime/device/capture/conditional.h"

#include "runtime/device/call.h"

using namespace acltape::device;

namespace {

aclError FindCondition(aclmdlRICondHandle handle, aclError code_of_null, const char* call,
                       Model::Condition** condition) {
  if (handle == nullptr) return Fail(code_of_null, "%s: the condition handle is NULL", call);
  *condition = ObjectOf<Model::Condition>(handle, HandleKind::kCondition);
  if (*condition != nullptr) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_INVALID_HANDLE, "%s: %p is not a live condition handle", call, handle);
}

}  // namespace

aclError aclmdlRICondHandleCreate(aclmdlRI modelRI, uint32_t defaultLaunchValue,
                                  aclmdlRICondHandleFlag flag, aclmdlRICondHandle* handle) {
  ACLTAPE_CALL("aclmdlRICondHandleCreate");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(handle, kCall, "handle"));
  Model* model = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindModel(modelRI, kCall, &model));
  auto bits = static_cast<uint32_t>(flag);
  if (bits > ACL_MODEL_RI_COND_HANDLE_ASSIGN_DEFAULT) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: flag %u is not 0 or 1", kCall, bits);
  }
  Model::Condition* condition = nullptr;
  ACLTAPE_RETURN_IF_FAILED(CreateCondition(*model, defaultLaunchValue, bits != 0, &condition));
  *handle = condition->handle;
  return ACL_SUCCESS;
}

aclError aclmdlRICondHandleGetCondPtr(aclmdlRICondHandle handle, uint64_t** ptr) {
  ACLTAPE_CALL("aclmdlRICondHandleGetCondPtr");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(ptr, kCall, "ptr"));
  Model::Condition* condition = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindCondition(handle, ACL_ERROR_INVALID_PARAM, kCall, &condition));
  *ptr = condition->cell;
  return ACL_SUCCESS;
}

aclError aclmdlRIAddCondTask(aclmdlRICondTaskParams params, aclrtStream stream, uint32_t flags) {
  ACLTAPE_CALL("aclmdlRIAddCondTask");
  Stream* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindGivenStream(stream, kCall, &found));
  if (!found->capturing()) {
    return Fail(ACL_ERROR_RT_STREAM_NOT_CAPTURED, "%s: stream %u is not capturing", kCall,
                found->id());
  }
  if (flags != 0 || params.modelRIArray == nullptr) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: %s", kCall,
                flags != 0 ? "flags must be 0" : "the array for the sub-graphs is NULL");
  }
  Model::Condition* condition = nullptr;
  ACLTAPE_RETURN_IF_FAILED(
      FindCondition(params.handle, ACL_ERROR_RT_PARAM_INVALID, kCall, &condition));
  // No device has room for more models; refused before any is made.
  if (params.size > GetProfile().models) {
    return Fail(ACL_ERROR_RT_NO_MODEL_RESOURCE,
                "%s: %u sub-graphs are more than the %u models of "
                "the device",
                kCall, params.size, GetProfile().models);
  }
  std::vector<Model*> sub_graphs(params.size, nullptr);
  ACLTAPE_RETURN_IF_FAILED(AddConditionalTask(*found, *condition, params.type, &sub_graphs));
  for (uint32_t i = 0; i < params.size; ++i) {
    params.modelRIArray[i] = sub_graphs[i] != nullptr ? sub_graphs[i]->handle() : nullptr;
  }
  return ACL_SUCCESS;
}
