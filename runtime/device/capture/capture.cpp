#include "runtime/device/capture/capture.h"

#include <algorithm>

#include "runtime/device/error.h"
#include "runtime/device/thread_state.h"

namespace acltape::device {
namespace {

std::atomic<uint32_t> active_count{0};

std::vector<Model*>& Active() {
  static std::vector<Model*>& active = *new std::vector<Model*>;
  return active;
}

// The capture is over: its streams and events mean again what they meant before (CAP-20, CAP-52).
void Leave(Model& model) {
  for (const Model::Member& member : model.members) {
    member.stream->capture = nullptr;
    member.stream->capture_status.store(ACL_MODEL_RI_CAPTURE_STATUS_NONE,
                                        std::memory_order_release);
    member.stream->capture_handle.store(nullptr, std::memory_order_release);
  }
  for (Event* event : model.events) event->graph.store(nullptr, std::memory_order_release);
  model.events.clear();
  auto& active = Active();
  active.erase(std::find(active.begin(), active.end(), &model));
  active_count.store(static_cast<uint32_t>(active.size()), std::memory_order_release);
}

void DeleteModel(Model* model) {
  {
    std::lock_guard lock(model->context().mutex);
    model->context().models.erase(model);
  }
  delete model;
}

// Why the capture cannot become a model; 0 when it can.
aclError EndFailure(Model& model) {
  if (model.mode != ACL_MODEL_RI_CAPTURE_MODE_RELAXED && model.thread != ThreadNumber()) {
    return Fail(ACL_ERROR_RT_STREAM_CAPTURE_WRONG_THREAD,
                "aclmdlRICaptureEnd: the capture was begun in another thread and its mode is not "
                "RELAXED; its tasks are lost");
  }
  if (model.invalidated) {
    return Fail(
        ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED,
        "aclmdlRICaptureEnd: the capture was invalidated by an earlier call that failed; its "
        "tasks are lost");
  }
  if (int64_t unjoined = model.UnjoinedMember(); unjoined >= 0) {
    return Fail(ACL_ERROR_RT_STREAM_UNJOINED,
                "aclmdlRICaptureEnd: stream %u was pulled into the capture and not joined back; "
                "record an event on it after its last task and wait for it on the origin stream",
                model.members[static_cast<size_t>(unjoined)].stream->id());
  }
  return ACL_SUCCESS;
}

}  // namespace

std::mutex& CaptureLock() {
  static std::mutex& mutex = *new std::mutex;
  return mutex;
}

const std::vector<Model*>& ActiveCaptures() { return Active(); }
bool AnyActiveCapture() { return active_count.load(std::memory_order_acquire) != 0; }

bool JoinCapture(Model& model, Stream& stream) {
  if (!model.AddMember(stream)) return false;
  stream.capture = &model;
  stream.capture_member = static_cast<uint32_t>(model.members.size() - 1);
  stream.capture_handle.store(model.handle(), std::memory_order_release);
  stream.capture_status.store(ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE, std::memory_order_release);
  return true;
}

void Invalidate(Model& model, bool storage_failed) {
  model.invalidated = true;
  if (!storage_failed && GetProfile().capture_info_from_source) return;
  for (const Model::Member& member : model.members) {
    member.stream->capture_status.store(ACL_MODEL_RI_CAPTURE_STATUS_INVALIDATED,
                                        std::memory_order_release);
  }
}

aclError BeginCapture(Stream& stream, uint32_t mode) {
  constexpr const char* kCall = "aclmdlRICaptureBegin";
  if (stream.is_default()) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                "%s: the default stream cannot be captured; create a stream", kCall);
  }
  if ((stream.flags() & kStreamFlagsWithoutCapture) != 0) {
    return Fail(
        ACL_ERROR_RT_INTERNAL_ERROR,
        "%s: stream %u was created with flags 0x%x; persistent, CPU scheduled and device only "
        "streams cannot be captured",
        kCall, stream.id(), stream.flags());
  }
  std::lock_guard lock(CaptureLock());
  if (stream.capture != nullptr) {
    return Fail(ACL_ERROR_RT_STREAM_CAPTURED, "%s: stream %u takes part in a capture already",
                kCall, stream.id());
  }
  Context& context = stream.context();
  std::optional<uint32_t> number = context.device().model_numbers.Take();
  if (!number) {
    return Fail(ACL_ERROR_RT_NO_MODEL_RESOURCE, "%s: all %u models of device %d are alive", kCall,
                GetProfile().models, context.device().id);
  }
  auto* model = new Model(context, *number, mode, ThreadNumber());
  if (model->handle() == nullptr || !JoinCapture(*model, stream)) {
    delete model;
    return Fail(ACL_ERROR_RT_NO_STREAM_RESOURCE,
                "%s: no stream left on device %d to store the captured tasks", kCall,
                context.device().id);
  }
  {
    std::lock_guard context_lock(context.mutex);
    context.models.insert(model);
  }
  Active().push_back(model);
  active_count.store(static_cast<uint32_t>(Active().size()), std::memory_order_release);
  return ACL_SUCCESS;
}

aclError EndCapture(Stream& stream, Model** result) {
  constexpr const char* kCall = "aclmdlRICaptureEnd";
  if (stream.is_default()) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, "%s: the default stream is never captured",
                kCall);
  }
  Model* failed = nullptr;
  aclError code;
  {
    std::lock_guard lock(CaptureLock());
    Model* model = stream.capture;
    if (model == nullptr) {
      return Fail(ACL_ERROR_RT_STREAM_NOT_CAPTURED, "%s: stream %u is not capturing", kCall,
                  stream.id());
    }
    if (stream.capture_member != 0) {
      return Fail(ACL_ERROR_RT_STREAM_CAPTURE_UNMATCHED,
                  "%s: stream %u joined the capture that stream %u began; end it there", kCall,
                  stream.id(), model->members[0].stream->id());
    }
    code = EndFailure(*model);
    Leave(*model);
    if (code == ACL_SUCCESS) {
      model->Close();
      *result = model;
    } else {
      failed = model;
    }
  }
  // Outside of the lock: dropping the tasks runs the owners' code.
  if (failed != nullptr) DeleteModel(failed);
  return code;
}

aclError StoreTask(Stream& stream, Task& task, int64_t record) {
  Model& model = *stream.capture;
  if (model.invalidated) {  // accepted and thrown away (CAP-60)
    task.Drop();
    return ACL_SUCCESS;
  }
  if (model.Append(stream.capture_member, task, record)) return ACL_SUCCESS;
  Invalidate(model, true);
  const char* name = task.name;
  task.Drop();
  return Fail(ACL_ERROR_RT_NO_STREAM_RESOURCE,
              "task %s cannot be captured: no stream left on device %d to store it; the capture is "
              "invalidated",
              name, model.context().device().id);
}

aclError SubmitOrCapture(Stream& stream, Task&& task) {
  if (stream.capturing()) [[unlikely]] {
    std::lock_guard lock(CaptureLock());
    if (stream.capture != nullptr) return StoreTask(stream, task);
  }
  return stream.Submit(std::move(task));
}

void DiscardCapturesOf(Context& context) {
  std::vector<Model*> discarded;
  {
    std::lock_guard lock(CaptureLock());
    for (Model* model : Active()) {
      if (&model->context() == &context) discarded.push_back(model);
    }
    for (Model* model : discarded) Leave(*model);
  }
  for (Model* model : discarded) DeleteModel(model);
}

}  // namespace acltape::device
