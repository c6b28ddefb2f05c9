#include "runtime/device/context.h"

#include <algorithm>

#include "runtime/device/capture/capture.h"
#include "runtime/device/error.h"
#include "runtime/device/event.h"
#include "runtime/device/futex.h"
#include "runtime/device/memory.h"
#include "runtime/device/model.h"
#include "runtime/device/named_callbacks.h"
#include "runtime/device/notify.h"
#include "runtime/device/standstill.h"
#include "runtime/device/thread_state.h"

namespace acltape::device {

Context::Context(Device& device, bool primary)
    : device_(device), handle_(AllocateHandle(HandleKind::kContext, this)), primary_(primary) {}

Context* Context::Create(Device& device, bool primary) {
  std::optional<uint32_t> number = device.stream_numbers.Take();
  if (!number) return nullptr;
  auto* context = new Context(device, primary);
  context->default_stream_ = new Stream(*context, *number, 0, 0, true);
  if (context->handle_ == nullptr || context->default_stream_->handle() == nullptr) {
    device.stream_numbers.Release(*number);
    return nullptr;
  }
  context->streams.insert(context->default_stream_);
  std::lock_guard lock(device.contexts_mutex);
  device.contexts.insert(context);
  return context;
}

namespace {

// Takes the objects of a set that no other call destroys already; those are gone when it returns.
template <typename T>
void DestroyAll(std::mutex& mutex, std::set<T*>& objects, HandleKind kind, void (*destroy)(T*)) {
  std::set<T*> owned;
  {
    std::lock_guard lock(mutex);
    owned.swap(objects);
  }
  for (T* object : owned) {
    if (object->handle() == nullptr || Claim(*object->handle(), kind)) FreeClaimed(object, destroy);
  }
}

}  // namespace

void Context::Close() {
  tearing_down.store(true);
  {
    std::lock_guard lock(device_.contexts_mutex);
    device_.contexts.erase(this);
  }
  DiscardCapturesOf(*this);
  std::set<Stream*> owned;
  {
    std::lock_guard lock(mutex);
    for (Stream* stream : streams) {
      if (Pin(*stream->handle(), HandleKind::kStream)) owned.insert(stream);
    }
    streams.clear();
  }
  for (const Stream* stream : owned) {
    CallStreamStateCallbacks(*stream, ACL_RT_STREAM_STATE_DESTROY_PRE);
  }
  std::erase_if(owned,
                [](Stream* stream) { return !Claim(*stream->handle(), HandleKind::kStream); });
  // Streams may wait for each other, so all of them run dry before the first one ends.
  DrainOrGiveUp(owned, "the release of a context");
  for (Stream* stream : owned) EndStream(stream, true);
  DestroyAll<Model>(mutex, models, HandleKind::kModel, [](Model* model) { delete model; });
  DestroyAll<Event>(mutex, events, HandleKind::kEvent, DeleteEvent);
  DestroyAll<Notify>(mutex, notifies, HandleKind::kNotify, DeleteNotify);
  DestroyAll<CountNotify>(mutex, count_notifies, HandleKind::kCountNotify, DeleteNotify);
  if (overflow_flag != nullptr) FreeMemory(overflow_flag, MemoryKind::kDevice);
  if (handle_ != nullptr) WipeHandle(handle_);
  KeepForGood(this);
}

// The handle is claimed.
void Context::EndStream(Stream* stream, bool run_queued) {
  const bool by_itself = stream->RunsHere();
  stream->Finish(run_queued);
  // Late destructors at exit: the worker may still stand on the object.
  if (Exiting()) return;
  device_.stream_numbers.Release(stream->id());
  // A function of the program that destroys its own stream still runs on it.
  if (by_itself) return KeepForGood(stream);
  if (stream->is_default()) return stream->Wipe();
  FreeClaimed(stream, DeleteStream);
}

aclError Context::CreateStream(uint32_t priority, uint32_t flags, Stream** stream) {
  std::optional<uint32_t> number = device_.stream_numbers.Take();
  if (!number) {
    return Fail(GetProfile().no_stream_code,
                "all %u streams of device %d are in use; captured models hold some until destroyed",
                GetProfile().streams, device_.id);
  }
  auto* created = new Stream(*this, *number, flags, priority, false);
  if (created->handle() == nullptr) {
    device_.stream_numbers.Release(*number);
    delete created;
    return Fail(ACL_ERROR_RT_RESOURCE_ALLOC_FAIL, "no handle left for a stream");
  }
  if (!Enter(streams, created)) {
    device_.stream_numbers.Release(*number);
    delete created;
    return Fail(ACL_ERROR_RT_CONTEXT_NULL, "another call is releasing the context");
  }
  *stream = created;
  CallStreamStateCallbacks(*created, ACL_RT_STREAM_STATE_CREATE_POST);
  return ACL_SUCCESS;
}

bool Context::DestroyStream(Stream* stream, bool run_queued) {
  CallStreamStateCallbacks(*stream, ACL_RT_STREAM_STATE_DESTROY_PRE);
  if (!Claim(*stream->handle(), HandleKind::kStream)) return false;
  {
    std::lock_guard lock(mutex);
    streams.erase(stream);
  }
  if (run_queued && !stream->RunsHere()) DrainOrGiveUp({stream}, "aclrtDestroyStream");
  EndStream(stream, run_queued);
  return true;
}

void Context::DropStandingWork(const char* call) {
  std::lock_guard lock(mutex);
  DropWork(streams, call);
}

// DEV-12: the streams that a device synchronisation waits for.
aclError Context::CollectWaiting(std::set<Stream*>* waiting) {
  std::lock_guard lock(mutex);
  for (Stream* stream : streams) {
    if (stream->capturing()) {
      return Fail(ACL_ERROR_RT_STREAM_CAPTURED,
                  "device synchronisation: stream %u is capturing; end the capture first",
                  stream->id());
    }
    const bool waits = (stream->flags() & kStreamFlagsWithoutCapture) == 0;
    // One whose handle is claimed is ended by who claimed it.
    if (waits && (stream->is_default() || Pin(*stream->handle(), HandleKind::kStream))) {
      waiting->insert(stream);
    }
  }
  return ACL_SUCCESS;
}

aclError Context::Synchronize(int64_t timeout_ns) {
  std::set<Context*> contexts = {this};
  if (GetProfile().synchronize_whole_device) {  // DEV-10
    std::lock_guard lock(device_.contexts_mutex);
    contexts = device_.contexts;
  }
  std::set<Stream*> waiting;
  for (Context* context : contexts) {
    if (aclError code = context->CollectWaiting(&waiting); code != ACL_SUCCESS) return code;
  }
  int64_t deadline = timeout_ns < 0 ? 0 : NowNs() + timeout_ns;
  aclError result = ACL_SUCCESS;
  for (Stream* stream : waiting) {
    int64_t left = timeout_ns < 0 ? -1 : std::max<int64_t>(deadline - NowNs(), 0);
    aclError code = stream->Synchronize(left);
    if (result == ACL_SUCCESS) result = code;
    if (code == ACL_ERROR_RT_STREAM_SYNC_TIMEOUT) break;
  }
  return result;
}

void Context::NoteTaskFailure(aclError code, const std::string& text) {
  if (IsDeviceFault(code) || stops_on_failure()) {
    std::lock_guard lock(failure_mutex_);
    if (first_failure_.empty()) first_failure_ = text;
  }
  if (IsDeviceFault(code)) device_.fault.store(code, std::memory_order_release);
  if (!stops_on_failure()) return;
  aclError none = ACL_SUCCESS;
  stopped_by_.compare_exchange_strong(none, code);  // the first failure stays
}

std::string Context::FirstFailure() const {
  std::lock_guard lock(failure_mutex_);
  const char* unknown = "an earlier task of this context or device failed";
  return first_failure_.empty() ? unknown : "stopped when " + first_failure_;
}

Context* CurrentContext(const char* call) {
  auto* context = thread_state.context.Get<Context>(HandleKind::kContext);
  if (context != nullptr && !context->tearing_down.load(std::memory_order_relaxed)) [[likely]] {
    return context;
  }
  if (thread_state.context.block == nullptr && DefaultDevice() >= 0 &&
      SetDevice(DefaultDevice()) == ACL_SUCCESS) {
    return thread_state.context.Get<Context>(HandleKind::kContext);
  }
  if (call != nullptr) {
    Fail(ACL_ERROR_RT_CONTEXT_NULL,
         "%s: this thread has no current context; call aclrtSetDevice or aclrtSetCurrentContext in "
         "it first",
         call);
  }
  return nullptr;
}

void SetCurrentContext(Context* context) {
  thread_state.context = context == nullptr ? HandleRef{} : HandleRef::To(context->handle());
}

aclError FindAnyStream(aclrtStream handle, const char* call, Stream** stream) {
  if (handle == nullptr) {
    Context* context = CurrentContext(call);
    if (context == nullptr) return ACL_ERROR_RT_CONTEXT_NULL;
    *stream = &context->default_stream();
    return ACL_SUCCESS;
  }
  *stream = ObjectOf<Stream>(handle, HandleKind::kStream);
  if (*stream == nullptr) {
    return Fail(ACL_ERROR_RT_INVALID_HANDLE, "%s: %p is not a live stream", call, handle);
  }
  return ACL_SUCCESS;
}

aclError FindStream(aclrtStream handle, const char* call, Stream** stream) {
  if (aclError code = FindAnyStream(handle, call, stream); code != ACL_SUCCESS) return code;
  Context* context = CurrentContext(call);
  if (context == nullptr) return ACL_ERROR_RT_CONTEXT_NULL;
  if (&(*stream)->context() != context) {
    return Fail(ACL_ERROR_RT_STREAM_CONTEXT,
                "%s: stream %u belongs to another context than this thread's current one", call,
                (*stream)->id());
  }
  return ACL_SUCCESS;
}

}  // namespace acltape::device
