// Contexts (section 4 of the rules).
#include "runtime/device/context.h"

#include <cstring>

#include "runtime/device/call.h"
#include "runtime/device/memory.h"
#include "runtime/device/named_callbacks.h"

using namespace acltape::device;

namespace {

// GEN-09: for contexts the code of a bad handle is 107002.
aclError FindContext(aclrtContext handle, const char* call, Context** context) {
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(handle, call, "the context"));
  *context = ObjectOf<Context>(handle, HandleKind::kContext);
  if (*context != nullptr) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_CONTEXT_NULL, "%s: %p is not a live context", call, handle);
}

aclError GetOption(Context& context, aclSysParamOpt option, int64_t* value, const char* call) {
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(value, call, "value"));
  std::lock_guard lock(context.mutex);
  auto found = context.options.find(option);
  if (found == context.options.end()) {
    return Fail(ACL_ERROR_RT_SYSPARAMOPT_NOT_SET, "%s: option %d was never set", call,
                static_cast<int>(option));
  }
  *value = found->second;
  return ACL_SUCCESS;
}

// Refuses an option that does not exist with `code`, which differs between functions.
aclError CheckOption(aclSysParamOpt option, aclError code, const char* call) {
  if (option >= ACL_OPT_DETERMINISTIC && option <= ACL_OPT_ENABLE_KERNEL_EARLY_START) {
    return ACL_SUCCESS;
  }
  return Fail(code, "%s: there is no option %d", call, static_cast<int>(option));
}

}  // namespace

aclError aclrtCreateContext(aclrtContext* context, int32_t deviceId) {
  ACLTAPE_CALL("aclrtCreateContext");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(context, kCall, "context"));
  Device* device = DeviceAt(deviceId);
  if (device == nullptr) {
    return Fail(ACL_ERROR_RT_INVALID_DEVICEID, "%s: there is no device %d", kCall, deviceId);
  }
  Context* created = Context::Create(*device, false);
  if (created == nullptr) {
    return Fail(ACL_ERROR_RT_NO_STREAM_RESOURCE,
                "%s: device %d has no stream left for the default stream", kCall, deviceId);
  }
  SetCurrentContext(created);
  CallStreamStateCallbacks(created->default_stream(), ACL_RT_STREAM_STATE_CREATE_POST);
  *context = created->handle();
  return ACL_SUCCESS;
}

aclError aclrtDestroyContext(aclrtContext context) {
  ACLTAPE_CALL("aclrtDestroyContext");
  if (Exiting()) return ACL_SUCCESS;
  Context* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindContext(context, kCall, &found));
  if (found->primary()) {
    return Fail(ACL_ERROR_RT_CONTEXT_NULL,
                "%s: this is the primary context of device %d; use aclrtResetDevice", kCall,
                found->device().id);
  }
  if (found->tearing_down.exchange(true)) {
    return Fail(ACL_ERROR_RT_CONTEXT_RELEASE_ERROR, "%s: another call is destroying the context",
                kCall);
  }
  // A context that was current is nobody's any more: its handle is wiped.
  found->Close();
  return ACL_SUCCESS;
}

aclError aclrtSetCurrentContext(aclrtContext context) {
  ACLTAPE_CALL("aclrtSetCurrentContext");
  Context* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindContext(context, kCall, &found));
  SetCurrentContext(found);
  return ACL_SUCCESS;
}

aclError aclrtGetCurrentContext(aclrtContext* context) {
  ACLTAPE_CALL("aclrtGetCurrentContext");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(context, kCall, "context"));
  Context* current = CurrentContext(kCall);
  if (current == nullptr) return ACL_ERROR_RT_CONTEXT_NULL;
  *context = current->handle();
  return ACL_SUCCESS;
}

aclError aclrtCtxGetCurrentDefaultStream(aclrtStream* stream) {
  ACLTAPE_CALL("aclrtCtxGetCurrentDefaultStream");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(stream, kCall, "stream"));
  Context* current = CurrentContext(kCall);
  if (current == nullptr) return ACL_ERROR_RT_CONTEXT_NULL;
  *stream = current->default_stream().handle();
  return ACL_SUCCESS;
}

aclError aclrtCtxGetSysParamOpt(aclSysParamOpt opt, int64_t* value) {
  ACLTAPE_CALL("aclrtCtxGetSysParamOpt");
  ACLTAPE_RETURN_IF_FAILED(CheckOption(opt, ACL_ERROR_INVALID_PARAM, kCall));
  Context* current = CurrentContext(kCall);
  if (current == nullptr) return ACL_ERROR_RT_CONTEXT_NULL;
  return GetOption(*current, opt, value, kCall);
}

aclError aclrtCtxSetSysParamOpt(aclSysParamOpt opt, int64_t value) {
  ACLTAPE_CALL("aclrtCtxSetSysParamOpt");
  ACLTAPE_RETURN_IF_FAILED(CheckOption(opt, ACL_ERROR_RT_PARAM_INVALID, kCall));
  Context* current = CurrentContext(kCall);
  if (current == nullptr) return ACL_ERROR_RT_CONTEXT_NULL;
  std::lock_guard lock(current->mutex);
  current->options[opt] = value;
  return ACL_SUCCESS;
}

aclError aclrtCtxGetFloatOverflowAddr(void** overflowAddr) {
  ACLTAPE_CALL("aclrtCtxGetFloatOverflowAddr");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(overflowAddr, kCall, "overflowAddr"));
  Context* context = CurrentContext(kCall);
  if (context == nullptr) return ACL_ERROR_RT_CONTEXT_NULL;
  constexpr size_t kFlagBytes = 64;
  std::lock_guard lock(context->mutex);
  if (context->overflow_flag == nullptr) {
    context->overflow_flag = AllocateDeviceMemory(context->device(), kFlagBytes, 0, kCall);
    if (context->overflow_flag == nullptr) {
      return Fail(ACL_ERROR_RT_MEMORY_ALLOCATION, "%s: no room for %zu bytes", kCall, kFlagBytes);
    }
    std::memset(context->overflow_flag, 0, kFlagBytes);  // nothing saturates, so nothing sets it
  }
  *overflowAddr = context->overflow_flag;
  return ACL_SUCCESS;
}
