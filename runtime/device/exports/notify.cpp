// Notifies and counting notifies (section 7 of the rules).
#include "runtime/device/notify.h"

#include "runtime/device/call.h"

using namespace acltape::device;

namespace {

template <typename T>
aclError Create(void** handle, uint64_t flag, std::set<T*> Context::*owned, const char* call) {
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(handle, call, "the output"));
  if (flag > ACL_NOTIFY_DEVICE_USE_ONLY) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: flag %llu is not 0 or 1", call,
                static_cast<unsigned long long>(flag));
  }
  Context* context = CurrentContext(call);
  if (context == nullptr) return ACL_ERROR_RT_CONTEXT_NULL;
  std::optional<uint32_t> number = context->device().notify_numbers.Take();
  if (!number) {
    return Fail(ACL_ERROR_RT_NO_NOTIFY_RESOURCE, "%s: all %u notifies of device %d are in use",
                call, GetProfile().notifies, context->device().id);
  }
  auto* created = new T(*context, *number);
  if (created->handle() == nullptr) {
    DeleteNotify(created);
    return Fail(ACL_ERROR_RT_NO_NOTIFY_RESOURCE, "%s: no handle left", call);
  }
  std::lock_guard lock(context->mutex);
  ((*context).*owned).insert(created);
  *handle = created->handle();
  return ACL_SUCCESS;
}

template <typename T>
aclError Find(void* handle, HandleKind kind, const char* call, T** object) {
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(handle, call, "the notify"));
  *object = ObjectOf<T>(handle, kind);
  if (*object != nullptr) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_INVALID_HANDLE, "%s: %p is not a live notify", call, handle);
}

template <typename T>
aclError Destroy(void* handle, HandleKind kind, std::set<T*> Context::*owned, const char* call) {
  if (Exiting()) return ACL_SUCCESS;
  T* notify = nullptr;
  ACLTAPE_RETURN_IF_FAILED(Find(handle, kind, call, &notify));
  {
    Context& context = notify->context();
    std::lock_guard lock(context.mutex);
    (context.*owned).erase(notify);
  }
  DeleteNotify(notify);
  return ACL_SUCCESS;
}

aclError SubmitTo(aclrtStream handle, const char* call, Task&& task) {
  Stream* stream = nullptr;
  if (aclError code = FindStream(handle, call, &stream); code != ACL_SUCCESS) {
    task.Drop();
    return code;
  }
  return SubmitTask(*stream, std::move(task));
}

}  // namespace

aclError aclrtCreateNotify(aclrtNotify* notify, uint64_t flag) {
  ACLTAPE_CALL("aclrtCreateNotify");
  return Create<Notify>(notify, flag, &Context::notifies, kCall);
}

aclError aclrtDestroyNotify(aclrtNotify notify) {
  ACLTAPE_CALL("aclrtDestroyNotify");
  return Destroy(notify, HandleKind::kNotify, &Context::notifies, kCall);
}

aclError aclrtRecordNotify(aclrtNotify notify, aclrtStream stream) {
  ACLTAPE_CALL("aclrtRecordNotify");
  Notify* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(Find(notify, HandleKind::kNotify, kCall, &found));
  return SubmitTo(stream, kCall, found->RecordTask());
}

aclError aclrtWaitAndResetNotify(aclrtNotify notify, aclrtStream stream, uint32_t timeout) {
  ACLTAPE_CALL("aclrtWaitAndResetNotify");
  Notify* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(Find(notify, HandleKind::kNotify, kCall, &found));
  return SubmitTo(stream, kCall, found->WaitTask(int64_t{timeout} * kSecond));
}

aclError aclrtGetNotifyId(aclrtNotify notify, uint32_t* notifyId) {
  ACLTAPE_CALL("aclrtGetNotifyId");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(notifyId, kCall, "notifyId"));
  Notify* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(Find(notify, HandleKind::kNotify, kCall, &found));
  *notifyId = found->number();
  return ACL_SUCCESS;
}

aclError aclrtNotifyBatchReset(aclrtNotify* notifies, size_t num) {
  ACLTAPE_CALL("aclrtNotifyBatchReset");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(notifies, kCall, "notifies"));
  for (size_t i = 0; i < num; ++i) {
    Notify* found = nullptr;
    ACLTAPE_RETURN_IF_FAILED(Find(notifies[i], HandleKind::kNotify, kCall, &found));
    found->Clear();
  }
  return ACL_SUCCESS;
}

aclError aclrtCntNotifyCreate(aclrtCntNotify* cntNotify, uint64_t flag) {
  ACLTAPE_CALL("aclrtCntNotifyCreate");
  return Create<CountNotify>(cntNotify, flag, &Context::count_notifies, kCall);
}

aclError aclrtCntNotifyDestroy(aclrtCntNotify cntNotify) {
  ACLTAPE_CALL("aclrtCntNotifyDestroy");
  return Destroy(cntNotify, HandleKind::kCountNotify, &Context::count_notifies, kCall);
}

aclError aclrtCntNotifyRecord(aclrtCntNotify cntNotify, aclrtStream stream,
                              aclrtCntNotifyRecordInfo* info) {
  ACLTAPE_CALL("aclrtCntNotifyRecord");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(info, kCall, "info"));
  CountNotify* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(Find(cntNotify, HandleKind::kCountNotify, kCall, &found));
  switch (info->mode) {
    case ACL_RT_CNT_NOTIFY_RECORD_SET_VALUE_MODE:
    case ACL_RT_CNT_NOTIFY_RECORD_ADD_MODE:
    case ACL_RT_CNT_NOTIFY_RECORD_BIT_OR_MODE:
    case ACL_RT_CNT_NOTIFY_RECORD_BIT_AND_MODE:
      return SubmitTo(stream, kCall, found->RecordTask(*info));
  }
  return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: there is no record mode %d", kCall,
              static_cast<int>(info->mode));
}

aclError aclrtCntNotifyWaitWithTimeout(aclrtCntNotify cntNotify, aclrtStream stream,
                                       aclrtCntNotifyWaitInfo* info) {
  ACLTAPE_CALL("aclrtCntNotifyWaitWithTimeout");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(info, kCall, "info"));
  CountNotify* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(Find(cntNotify, HandleKind::kCountNotify, kCall, &found));
  if (info->mode > ACL_RT_CNT_NOTIFY_WAIT_EQUAL_WITH_BITMASK_MODE) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: there is no wait mode %d", kCall,
                static_cast<int>(info->mode));
  }
  return SubmitTo(stream, kCall, found->WaitTask(*info));
}

aclError aclrtCntNotifyReset(aclrtCntNotify cntNotify, aclrtStream stream) {
  ACLTAPE_CALL("aclrtCntNotifyReset");
  CountNotify* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(Find(cntNotify, HandleKind::kCountNotify, kCall, &found));
  return SubmitTo(stream, kCall, found->ResetTask());
}

aclError aclrtCntNotifyGetId(aclrtCntNotify cntNotify, uint32_t* notifyId) {
  ACLTAPE_CALL("aclrtCntNotifyGetId");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(notifyId, kCall, "notifyId"));
  CountNotify* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(Find(cntNotify, HandleKind::kCountNotify, kCall, &found));
  *notifyId = found->number();
  return ACL_SUCCESS;
}
