// Notifies and counting notifies (section 7 of the rules).
#include "runtime/device/notify.h"

#include <unistd.h>

#include <cstdio>

#include "runtime/device/call.h"

using namespace acltape::device;

namespace {

// Enters a notify that `make` makes of the context and a number.
template <typename T, typename Make>
aclError Enter(void** handle, std::set<T*> Context::*owned, const Make& make, const char* call) {
  Context* context = CurrentContext(call);
  if (context == nullptr) return ACL_ERROR_RT_CONTEXT_NULL;
  std::optional<uint32_t> number = context->device().notify_numbers.Take();
  if (!number) {
    return Fail(ACL_ERROR_RT_NO_NOTIFY_RESOURCE, "%s: all %u notifies of device %d are in use",
                call, GetProfile().notifies, context->device().id);
  }
  T* created = make(*context, *number);
  if (created->handle() == nullptr) {
    DeleteNotify(created);
    return Fail(ACL_ERROR_RT_NO_NOTIFY_RESOURCE, "%s: no handle left", call);
  }
  if (!context->Enter((*context).*owned, created)) {
    DeleteNotify(created);
    return ContextIsReleased(call);
  }
  *handle = created->handle();
  return ACL_SUCCESS;
}

template <typename T>
aclError Create(void** handle, uint64_t flag, std::set<T*> Context::*owned, const char* call) {
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(handle, call, "the output"));
  if (flag > ACL_NOTIFY_DEVICE_USE_ONLY) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: flag %llu is not 0 or 1", call,
                static_cast<unsigned long long>(flag));
  }
  const auto make = [](Context& context, uint32_t number) { return new T(context, number); };
  return Enter(handle, owned, make, call);
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
  if (!Claim(*notify->handle(), kind)) return BeingDestroyed(call, "notify");
  {
    Context& context = notify->context();
    std::lock_guard lock(context.mutex);
    (context.*owned).erase(notify);
  }
  FreeClaimed<T>(notify, DeleteNotify);
  return ACL_SUCCESS;
}

constexpr size_t kNotifyKeyBytes = 65;

std::string KeyOf(const SharedName& name) {
  char text[kNotifyKeyBytes];
  std::snprintf(text, sizeof(text), "acltape notify:%x:%x:%x", name.process, name.descriptor,
                name.serial);
  return text;
}

bool ReadKey(const char* key, SharedName* name) {
  int end = -1;
  const int read = std::sscanf(key, "acltape notify:%x:%x:%x%n", &name->process, &name->descriptor,
                               &name->serial, &end);
  return read == 3 && end >= 0 && key[end] == '\0';
}

// The two values of a flag that the interface has.
aclError CheckFlags(uint64_t flags, uint64_t other, const char* call) {
  if (flags == 0 || flags == other) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: flags %llu is not 0 or %llu", call,
              static_cast<unsigned long long>(flags), static_cast<unsigned long long>(other));
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

// IPC-06. The notify lives until every process has destroyed its own.
aclError aclrtNotifyGetExportKey(aclrtNotify notify, char* key, size_t len, uint64_t flags) {
  ACLTAPE_CALL("aclrtNotifyGetExportKey");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(key, kCall, "key"));
  if (len < kNotifyKeyBytes) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: a key of %zu bytes is shorter than %zu", kCall,
                len, kNotifyKeyBytes);
  }
  constexpr uint64_t kAnyone = ACL_RT_NOTIFY_EXPORT_FLAG_DISABLE_PID_VALIDATION;
  ACLTAPE_RETURN_IF_FAILED(CheckFlags(flags, kAnyone, kCall));
  Notify* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(Find(notify, HandleKind::kNotify, kCall, &found));
  if (!found->word().Share()) {
    return Fail(ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, "%s: the host cannot make a shared file", kCall);
  }
  found->word().file()->Publish(flags == kAnyone);
  std::snprintf(key, len, "%s", KeyOf(found->word().file()->name()).c_str());
  return ACL_SUCCESS;
}

aclError aclrtNotifySetImportPid(aclrtNotify notify, int32_t* pid, size_t num) {
  ACLTAPE_CALL("aclrtNotifySetImportPid");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(pid, kCall, "pid"));
  Notify* found = nullptr;
  ACLTAPE_RETURN_IF_FAILED(Find(notify, HandleKind::kNotify, kCall, &found));
  SharedFile* file = found->word().file();
  if (file == nullptr || num == 0) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID,
                "%s: num is 0, or the notify has no key; call aclrtNotifyGetExportKey first",
                kCall);
  }
  if (file->Allow(pid, num)) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, "%s: at most %zu processes can be allowed", kCall,
              SharedFile::kMostProcesses);
}

aclError aclrtNotifyImportByKey(aclrtNotify* notify, const char* key, uint64_t flags) {
  ACLTAPE_CALL("aclrtNotifyImportByKey");
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(notify, kCall, "notify"));
  ACLTAPE_RETURN_IF_FAILED(CheckPointer(key, kCall, "key"));
  ACLTAPE_RETURN_IF_FAILED(CheckFlags(flags, ACL_RT_NOTIFY_IMPORT_FLAG_ENABLE_PEER_ACCESS, kCall));
  SharedName name;
  if (!ReadKey(key, &name)) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: this is no key of aclrtNotifyGetExportKey", kCall);
  }
  std::unique_ptr<SharedFile> file = SharedFile::Open(name);
  if (file == nullptr || !file->AdmitsUs()) {
    return Fail(ACL_ERROR_RT_DRV_INTERNAL_ERROR,
                "%s: process %u has ended, has destroyed the notify, or has not allowed process %d",
                kCall, name.process, static_cast<int>(getpid()));
  }
  NotifyWord* word = NotifyWord::Of(std::move(file));
  if (word == nullptr) {
    return Fail(ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, "%s: the host cannot map the notify", kCall);
  }
  const auto make = [word](Context& context, uint32_t number) {
    word->Retain();  // the notify's own reference
    return new Notify(context, number, word);
  };
  const aclError code = Enter(notify, &Context::notifies, make, kCall);
  word->Release();
  return code;
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
