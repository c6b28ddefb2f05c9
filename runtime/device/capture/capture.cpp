#include "runtime/device/capture/capture.h"

#include <algorithm>

#include "runtime/device/capture/task_group.h"
#include "runtime/device/control.h"
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
    member.stream->Divert();
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

// The lost capture's model; a sub-graph stays with its conditional task and can be captured again.
void DeleteModel(Model* model) {
  if (model->kind() == Model::Kind::kSubGraph) {
    model->Clear();
    model->set_state(Model::State::kEmpty);
    return;
  }
  {
    std::lock_guard lock(model->context().mutex);
    model->context().models.erase(model);
  }
  if (Claim(*model->handle(), HandleKind::kModel)) {
    FreeClaimed<Model>(model, [](Model* freed) { delete freed; });
  }
}

// COND-11.
const Model* UncapturedSubGraph(const Model& model) {
  for (const Model::Node& node : model.nodes) {
    if (node.control == nullptr) continue;
    for (const Model* sub_graph : node.control->SubGraphs()) {
      if (sub_graph->state() != Model::State::kReady) return sub_graph;
    }
  }
  return nullptr;
}

// The error that keeps the capture from becoming a model; 0: none.
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
  if (const Model* missing = UncapturedSubGraph(model)) {
    return Fail(ACL_ERROR_RT_SUB_ACLGRAPH_IS_CAPTURING,
                "aclmdlRICaptureEnd: sub-graph %u of a conditional task has not been captured; the "
                "capture is lost",
                missing->id());
  }
  if (model.open_group != nullptr) {
    return Fail(ACL_ERROR_STREAM_TASK_GROUP_STATUS,
                "aclmdlRICaptureEnd: a task group is open; end it before the capture, which is "
                "lost");
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
  stream.Divert();
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

// CAP-02, as far as the stream alone decides.
aclError CheckStream(const Stream& stream, const char* call) {
  if (stream.built != nullptr) {
    return Fail(ACL_ERROR_RT_STREAM_MODEL, "%s: stream %u is bound to model %u", call, stream.id(),
                stream.built->id());
  }
  if (stream.is_default()) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                "%s: the default stream cannot be captured; create a stream", call);
  }
  if ((stream.flags() & kStreamFlagsWithoutCapture) != 0) {
    return Fail(
        ACL_ERROR_RT_INTERNAL_ERROR,
        "%s: stream %u was created with flags 0x%x; persistent, CPU scheduled and device only "
        "streams cannot be captured",
        call, stream.id(), stream.flags());
  }
  if (stream.capture != nullptr) {
    return Fail(ACL_ERROR_RT_STREAM_CAPTURED, "%s: stream %u takes part in a capture already", call,
                stream.id());
  }
  return ACL_SUCCESS;
}

aclError BeginCapture(Stream& stream, Model* sub_graph, uint32_t mode, const char* call) {
  std::lock_guard lock(CaptureLock());
  if (sub_graph != nullptr && sub_graph->state() != Model::State::kEmpty) {
    return Fail(ACL_ERROR_RT_MODEL_CAPTURED, "%s: sub-graph %u is captured already", call,
                sub_graph->id());
  }
  if (aclError code = CheckStream(stream, call); code != ACL_SUCCESS) return code;
  Context& context = stream.context();
  if (context.tearing_down.load()) {
    return Fail(ACL_ERROR_RT_CONTEXT_NULL, "%s: another call is releasing the context", call);
  }
  Model* model = sub_graph;
  if (model == nullptr) {
    aclError code = Model::Create(context, Model::Kind::kCaptured, call, &model);
    if (code != ACL_SUCCESS) return code;
  }
  if (!JoinCapture(*model, stream)) {
    if (sub_graph == nullptr) delete model;
    return Fail(GetProfile().no_capture_stream_code,
                "%s: no stream left on device %d to store the captured tasks", call,
                context.device().id);
  }
  model->mode = mode;
  model->thread = ThreadNumber();
  model->set_state(Model::State::kCapturing);
  if (sub_graph == nullptr) {
    std::lock_guard context_lock(context.mutex);
    context.models.insert(model);
  }
  Active().push_back(model);
  active_count.store(static_cast<uint32_t>(Active().size()), std::memory_order_release);
  return ACL_SUCCESS;
}

aclError EndCapture(Stream& stream, bool has_output, Model** result) {
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
    if (!has_output && (model == nullptr || model->kind() != Model::Kind::kSubGraph)) {
      return Fail(ACL_ERROR_RT_PARAM_INVALID, "%s: modelRI is NULL", kCall);
    }
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
    if (code == ACL_SUCCESS && !model->Close()) {
      code = Fail(ACL_ERROR_RT_RESOURCE_ALLOC_FAIL,
                  "%s: no stream left on device %d to store what the next replay needs to start "
                  "clean; the capture is lost",
                  kCall, model->context().device().id);
    }
    if (code == ACL_SUCCESS) {
      *result = model;
    } else {
      failed = model;
      DiscardSubGraphCaptures(*model);
    }
  }
  // Outside of the lock: dropping the tasks runs the owners' code.
  if (failed != nullptr) DeleteModel(failed);
  return code;
}

void DiscardSubGraphCaptures(Model& model) {
  for (Model::Node& node : model.nodes) {
    if (node.control == nullptr) continue;
    for (Model* sub_graph : node.control->SubGraphs()) {
      if (sub_graph->state() == Model::State::kCapturing) Leave(*sub_graph);
      DiscardSubGraphCaptures(*sub_graph);
    }
  }
}

namespace {

void NoteLastTask(const Model::Node& node) {
  thread_state.last_model = HandleRef::To(node.model->handle());
  thread_state.last_node = node.sequence;
}

}  // namespace

aclError StoreTask(Stream& stream, Task& task, int64_t record, Model::Node** stored) {
  Model& model = *stream.capture;
  if (aclError code = CheckTaskGroup(stream, task); code != ACL_SUCCESS) {
    task.Drop();
    return code;
  }
  if (model.invalidated) {  // accepted and thrown away (CAP-60)
    task.Drop();
    return ACL_SUCCESS;
  }
  TaskGroup* group = model.open_group;
  Model::Node* node = model.Append(stream.capture_member, task, record);
  if (node != nullptr) {
    NoteLastTask(*node);
    if (group != nullptr) {
      node->group = group;
      node->task = group->Adopt(task);
    }
    if (stored != nullptr) *stored = node;
    return ACL_SUCCESS;
  }
  Invalidate(model, true);
  const char* name = task.name;
  task.Drop();
  return Fail(GetProfile().no_capture_stream_code,
              "task %s cannot be captured: no stream left on device %d to store it; the capture is "
              "invalidated",
              name, model.context().device().id);
}

aclError StoreBuiltTask(Stream& stream, Task& task) {
  Model& model = *stream.built;
  if (model.state() != Model::State::kCapturing) {
    const char* name = task.name;
    task.Drop();
    return Fail(ACL_ERROR_RT_STREAM_MODEL,
                "task %s: stream %u is bound to model %u, which is complete; unbind the stream",
                name, stream.id(), model.id());
  }
  // Bound streams take any number.
  const Model::Node& node = *model.Append(stream.built_member, task);
  thread_state.last_task_id = node.sequence;
  NoteLastTask(node);
  return ACL_SUCCESS;
}

aclError SubmitOrCapture(Stream& stream, Task&& task) {
  if (stream.diverted()) [[unlikely]] {
    std::lock_guard lock(CaptureLock());
    if (stream.capture != nullptr) return StoreTask(stream, task);
    if (stream.built != nullptr) return StoreBuiltTask(stream, task);
    if (stream.update != nullptr) {
      if (aclError code = stream.update->Next(stream, task); code != ACL_SUCCESS) return code;
    }
  }
  return stream.Submit(std::move(task));
}

// The capture that the stream takes part in ends without a model.
void DeleteStream(Stream* stream) {
  Model* model = nullptr;
  {
    std::lock_guard lock(CaptureLock());
    model = stream->capture;
    if (model != nullptr) Leave(*model);
  }
  if (model != nullptr && model->kind() == Model::Kind::kCaptured) DeleteModel(model);
  delete stream;
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
  // Sub-graphs go with their parents.
  for (Model* model : discarded) {
    if (model->kind() == Model::Kind::kCaptured) DeleteModel(model);
  }
}

}  // namespace acltape::device
