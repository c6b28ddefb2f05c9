// Streams (section 5 of the rules).
#include "runtime/device/stream.h"

#include <cstring>

#include "runtime/device/built_model.h"
#include "runtime/device/memory_pool.h"
#include "runtime/device/plain_object.h"
#include "runtime/device/thread_state.h"
#include "runtime/device/value_task.h"

using namespace acltape::device;

namespace {

constexpr uint32_t kKnownFlags = 0x3F;  // STR-07

aclError CreateStream(aclrtStream* stream, uint32_t priority, uint32_t flags, const char* call) {
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(stream, call, "stream"));
  if ((flags & ~kKnownFlags) != 0) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: unknown flags 0x%x", call, flags & ~kKnownFlags);
  }
  Context* context = CurrentContext(call);
  if (context == nullptr) return ACL_ERROR_RT_CONTEXT_NULL;
  Stream* created = nullptr;
  ACLTAPE_RETURN_IF_FAILED(context->CreateStream(priority, flags, &created));
  *stream = created->handle();
  return ACL_SUCCESS;
}

// STR-10, STR-16: streams that are bound to a built model.
aclError CheckNotBound(const Stream& stream, aclError code, const char* call) {
  std::lock_guard lock(CaptureLock());
  if (stream.built == nullptr) return ACL_SUCCESS;
  return Fail(code, "%s: stream %u is bound to model %u; unbind it first", call, stream.id(),
              stream.built->id());
}

// STR-10, CAP-64.
aclError DestroyStream(aclrtStream stream, bool run_queued, const char* call) {
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(stream, call, "stream"));
  if (Exiting()) return ACL_SUCCESS;
  Stream* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindAnyStream(stream, call, &found));
  ACLTAPE_RETURN_IF_FAILED(CheckNotCapturing(*found, call));
  // A thread without context may still destroy: late destructors run in such threads (INIT-09).
  Context* context = CurrentContext(nullptr);
  if (context != nullptr && &found->context() != context) {
    return Fail(ACL_ERROR_RT_STREAM_CONTEXT, "%s: stream %u belongs to another context", call,
                found->id());
  }
  if (found->is_default()) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: a default stream lives as long as its context",
                call);
  }
  ACLTAPE_RETURN_IF_FAILED(CheckNotBound(*found, ACL_ERROR_RT_STREAM_MODEL, call));
  if (found->context().DestroyStream(found, run_queued)) return ACL_SUCCESS;
  return BeingDestroyed(call, "stream");
}

// GEN-06: a stream of another context is accepted.
aclError SynchronizeStream(aclrtStream stream, int64_t timeout_ns, const char* call) {
  Stream* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindAnyStream(stream, call, &found));
  ACLTAPE_RETURN_IF_FAILED(CheckNotCapturing(*found, call));
  ACLTAPE_RETURN_IF_FAILED(found->Synchronize(timeout_ns));
  TrimPools();
  return ACL_SUCCESS;
}

// STR-15 to STR-17.
aclError SetFailureMode(Stream& stream, uint64_t mode, const char* call) {
  if (mode > ACL_STOP_ON_FAILURE) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: failure mode %llu is not 0 or 1", call,
                static_cast<unsigned long long>(mode));
  }
  ACLTAPE_RETURN_IF_FAILED(CheckNotBound(stream, ACL_ERROR_RT_FEATURE_NOT_SUPPORT, call));
  Context& context = stream.context();
  if (mode == ACL_STOP_ON_FAILURE) {
    context.StopOnFailure();
  } else if (context.stops_on_failure()) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                "%s: the failure mode can be raised to stop, but not lowered again", call);
  }
  return ACL_SUCCESS;
}

// Values of aclrtSetStreamConfigOpt, by attribute.
struct ConfigField {
  aclrtStreamConfigAttr attribute;
  size_t offset;
  size_t bytes;
};
constexpr ConfigField kConfigFields[] = {
    {ACL_RT_STREAM_WORK_ADDR_PTR, offsetof(aclrtStreamConfigHandle, workptr), sizeof(void*)},
    {ACL_RT_STREAM_WORK_SIZE, offsetof(aclrtStreamConfigHandle, workSize), sizeof(size_t)},
    {ACL_RT_STREAM_FLAG, offsetof(aclrtStreamConfigHandle, flag), sizeof(size_t)},
    {ACL_RT_STREAM_PRIORITY, offsetof(aclrtStreamConfigHandle, priority), sizeof(uint32_t)},
};

}  // namespace

aclError aclrtCreateStream(aclrtStream* stream) {
  ACLTAPE_CALL("aclrtCreateStream");
  return CreateStream(stream, 0, 0, kCall);
}

aclError aclrtCreateStreamWithConfig(aclrtStream* stream, uint32_t priority, uint32_t flag) {
  ACLTAPE_CALL("aclrtCreateStreamWithConfig");
  return CreateStream(stream, priority, flag, kCall);
}

aclError aclrtCreateStreamV2(aclrtStream* stream, const aclrtStreamConfigHandle* handle) {
  ACLTAPE_CALL("aclrtCreateStreamV2");
  ACLTAPE_RETURN_IF_FAILED(CheckPlain(handle, kCall, "handle"));
  return CreateStream(stream, handle->priority, static_cast<uint32_t>(handle->flag), kCall);
}

aclrtStreamConfigHandle* aclrtCreateStreamConfigHandle(void) {
  return Plain<aclrtStreamConfigHandle>().Create();
}

aclError aclrtDestroyStreamConfigHandle(aclrtStreamConfigHandle* handle) {
  ACLTAPE_CALL("aclrtDestroyStreamConfigHandle");
  return DestroyPlain(handle, kCall, "handle");
}

aclError aclrtSetStreamConfigOpt(aclrtStreamConfigHandle* handle, aclrtStreamConfigAttr attr,
                                 const void* attrValue, size_t valueSize) {
  ACLTAPE_CALL("aclrtSetStreamConfigOpt");
  ACLTAPE_RETURN_IF_FAILED(CheckPlain(handle, kCall, "handle"));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(attrValue, kCall, "attrValue"));
  for (const ConfigField& field : kConfigFields) {
    if (field.attribute != attr) continue;
    // The vendor's own samples give a uint32_t for the flags.
    const bool short_flag = attr == ACL_RT_STREAM_FLAG && valueSize == sizeof(uint32_t);
    if (short_flag) std::memset(reinterpret_cast<char*>(handle) + field.offset, 0, field.bytes);
    if (valueSize != field.bytes && !short_flag) {
      return Fail(ACL_ERROR_INVALID_PARAM, "%s: attribute %d has %zu bytes, not %zu", kCall,
                  static_cast<int>(attr), field.bytes, valueSize);
    }
    std::memcpy(reinterpret_cast<char*>(handle) + field.offset, attrValue, valueSize);
    return ACL_SUCCESS;
  }
  return Fail(ACL_ERROR_INVALID_PARAM, "%s: there is no attribute %d", kCall,
              static_cast<int>(attr));
}

aclError aclrtDestroyStream(aclrtStream stream) {
  ACLTAPE_CALL("aclrtDestroyStream");
  return DestroyStream(stream, true, kCall);
}

aclError aclrtDestroyStreamForce(aclrtStream stream) {
  ACLTAPE_CALL("aclrtDestroyStreamForce");
  return DestroyStream(stream, false, kCall);
}

aclError aclrtSynchronizeStream(aclrtStream stream) {
  ACLTAPE_CALL("aclrtSynchronizeStream");
  return SynchronizeStream(stream, -1, kCall);
}

aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout) {
  ACLTAPE_CALL("aclrtSynchronizeStreamWithTimeout");
  ACLTAPE_RETURN_IF_FAILED(CheckTimeout(timeout, kCall));
  return SynchronizeStream(stream, TimeoutNs(timeout), kCall);
}

aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus* status) {
  ACLTAPE_CALL("aclrtStreamQuery");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(status, kCall, "status"));
  Stream* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindStream(stream, kCall, &found));
  ACLTAPE_RETURN_IF_FAILED(CheckNotCapturing(*found, kCall));
  *status = found->Idle() ? ACL_STREAM_STATUS_COMPLETE : ACL_STREAM_STATUS_NOT_READY;
  if (aclError code = found->PendingError(); code != ACL_SUCCESS) {
    return Fail(code, "%s: a task of stream %u failed", kCall, found->id());
  }
  return ACL_SUCCESS;
}

aclError aclrtStreamAbort(aclrtStream stream) {
  ACLTAPE_CALL("aclrtStreamAbort");
  Stream* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindStream(stream, kCall, &found));
  ACLTAPE_RETURN_IF_FAILED(CheckNotCapturing(*found, kCall));
  found->Abort();
  return ACL_SUCCESS;
}

aclError aclrtStreamStop(aclrtStream stream) {
  ACLTAPE_CALL("aclrtStreamStop");
  Stream* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindGivenStream(stream, kCall, &found));
  ACLTAPE_RETURN_IF_FAILED(CheckNotCapturing(*found, kCall));
  ACLTAPE_RETURN_IF_FAILED(CheckNotBound(*found, ACL_ERROR_RT_STREAM_MODEL, kCall));
  found->Stop();
  return ACL_SUCCESS;
}

aclError aclrtPersistentTaskClean(aclrtStream stream) {
  ACLTAPE_CALL("aclrtPersistentTaskClean");
  Stream* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindGivenStream(stream, kCall, &found));
  if (!found->persistent()) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID,
                "%s: stream %u was created without ACL_STREAM_PERSISTENT", kCall, found->id());
  }
  return CleanPersistent(*found);
}

aclError aclrtStreamGetId(aclrtStream stream, int32_t* streamId) {
  ACLTAPE_CALL("aclrtStreamGetId");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(streamId, kCall, "streamId"));
  Stream* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindAnyStream(stream, kCall, &found));
  *streamId = static_cast<int32_t>(found->id());
  return ACL_SUCCESS;
}

aclError aclrtStreamGetPriority(aclrtStream stream, uint32_t* priority) {
  ACLTAPE_CALL("aclrtStreamGetPriority");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(priority, kCall, "priority"));
  Stream* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindAnyStream(stream, kCall, &found));
  *priority = found->priority();
  return ACL_SUCCESS;
}

aclError aclrtStreamGetFlags(aclrtStream stream, uint32_t* flags) {
  ACLTAPE_CALL("aclrtStreamGetFlags");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(flags, kCall, "flags"));
  Stream* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindAnyStream(stream, kCall, &found));
  *flags = found->flags();
  return ACL_SUCCESS;
}

aclError aclrtDeviceGetStreamPriorityRange(int32_t* leastPriority, int32_t* greatestPriority) {
  ACLTAPE_CALL("aclrtDeviceGetStreamPriorityRange");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(leastPriority, kCall, "leastPriority"));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(greatestPriority, kCall, "greatestPriority"));
  *leastPriority = 7;
  *greatestPriority = 0;
  return ACL_SUCCESS;
}

aclError aclrtSetStreamFailureMode(aclrtStream stream, uint64_t mode) {
  ACLTAPE_CALL("aclrtSetStreamFailureMode");
  Stream* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindStream(stream, kCall, &found));
  return SetFailureMode(*found, mode, kCall);
}

aclError aclrtSetStreamAttribute(aclrtStream stream, aclrtStreamAttr stmAttrType,
                                 aclrtStreamAttrValue* value) {
  ACLTAPE_CALL("aclrtSetStreamAttribute");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(value, kCall, "value"));
  Stream* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindStream(stream, kCall, &found));
  switch (stmAttrType) {
    case ACL_STREAM_ATTR_FAILURE_MODE:
      return SetFailureMode(*found, value->failureMode, kCall);
    case ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK:
      ACLTAPE_RETURN_IF_FAILED(CheckNotCapturing(*found, kCall));
      found->overflow_switch.store(value->overflowSwitch);
      return ACL_SUCCESS;
    case ACL_STREAM_ATTR_USER_CUSTOM_TAG:
      ACLTAPE_RETURN_IF_FAILED(CheckNotCapturing(*found, kCall));
      found->user_tag.store(value->userCustomTag);
      return ACL_SUCCESS;
    case ACL_STREAM_ATTR_CACHE_OP_INFO:
      found->cache_op_info.store(value->cacheOpInfoSwitch);
      return ACL_SUCCESS;
    case ACL_STREAM_ATTR_PRIORITY:
      found->set_priority(value->streamPriority);
      return ACL_SUCCESS;
  }
  return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: there is no attribute %d", kCall,
              static_cast<int>(stmAttrType));
}

aclError aclrtGetStreamAttribute(aclrtStream stream, aclrtStreamAttr stmAttrType,
                                 aclrtStreamAttrValue* value) {
  ACLTAPE_CALL("aclrtGetStreamAttribute");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(value, kCall, "value"));
  Stream* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindStream(stream, kCall, &found));
  switch (stmAttrType) {
    case ACL_STREAM_ATTR_FAILURE_MODE:
      value->failureMode = found->context().stops_on_failure() ? 1 : 0;
      return ACL_SUCCESS;
    case ACL_STREAM_ATTR_FLOAT_OVERFLOW_CHECK:
      value->overflowSwitch = found->overflow_switch.load();
      return ACL_SUCCESS;
    case ACL_STREAM_ATTR_USER_CUSTOM_TAG:
      value->userCustomTag = found->user_tag.load();
      return ACL_SUCCESS;
    case ACL_STREAM_ATTR_CACHE_OP_INFO:
      value->cacheOpInfoSwitch = found->cache_op_info.load();
      return ACL_SUCCESS;
    case ACL_STREAM_ATTR_PRIORITY:
      value->streamPriority = found->priority();
      return ACL_SUCCESS;
  }
  return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: there is no attribute %d", kCall,
              static_cast<int>(stmAttrType));
}

aclError aclrtValueWrite(void* devAddr, uint64_t value, uint32_t flag, aclrtStream stream) {
  ACLTAPE_CALL("aclrtValueWrite");
  ACLTAPE_RETURN_IF_FAILED(CheckValueAddress(devAddr, kCall));
  if (flag != 0) return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: flag %u is not 0", kCall, flag);
  Stream* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindStream(stream, kCall, &found));
  return SubmitTask(*found, ValueWriteTask(devAddr, value));
}

aclError aclrtValueWait(void* devAddr, uint64_t value, uint32_t flag, aclrtStream stream) {
  ACLTAPE_CALL("aclrtValueWait");
  ACLTAPE_RETURN_IF_FAILED(CheckValueAddress(devAddr, kCall));
  ACLTAPE_RETURN_IF_FAILED(CheckValueComparison(flag, kCall));
  Stream* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(FindStream(stream, kCall, &found));
  return SubmitTask(*found, ValueWaitTask(devAddr, value, flag));
}

aclError aclrtGetThreadLastTaskId(uint32_t* taskId) {
  ACLTAPE_CALL("aclrtGetThreadLastTaskId");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(taskId, kCall, "taskId"));
  *taskId = thread_state.last_task_id;
  return ACL_SUCCESS;
}

aclError aclrtGetStreamAvailableNum(uint32_t* streamCount) {
  ACLTAPE_CALL("aclrtGetStreamAvailableNum");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(streamCount, kCall, "streamCount"));
  Context* context = CurrentContext(kCall);
  if (context == nullptr) return ACL_ERROR_RT_CONTEXT_NULL;
  *streamCount = context->device().stream_numbers.Available();
  return ACL_SUCCESS;
}
