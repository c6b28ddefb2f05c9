// Events on streams and in captures: fork, join and the refusals (CAP-40 to CAP-53).
#include "runtime/device/capture/capture.h"
#include "runtime/device/error.h"

namespace acltape::device {
namespace {

// CAP-43, CAP-54.
bool NeverCaptured(const Event& event) {
  return event.type() == EventType::kOld || event.type() == EventType::kIpc;
}

aclError RefuseOldEvent(const char* call, const Stream& stream) {
  return Fail(
      ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
      "%s: stream %u is capturing, and only events made by aclrtCreateEventExWithFlag or with "
      "the external flag can be captured",
      call, stream.id());
}

// CAP-42: for streams that would be pulled into the event's capture. Invalidates it (CAP-49).
aclError RefuseDefaultStream(const char* call, Event& event) {
  Invalidate(*event.graph.load(), false);
  return Fail(ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT,
              "%s: the event belongs to a capture, and the default stream cannot join one; the "
              "capture is invalidated",
              call);
}

// CAP-48.
aclError RefuseConflict(const char* call, Model& first, Model& second) {
  Invalidate(first, false);
  Invalidate(second, false);
  return Fail(
      ACL_ERROR_STREAM_CAPTURE_CONFLICT,
      "%s: the event belongs to the capture of model %u and the stream to that of model %u; "
      "both are invalidated",
      call, first.id(), second.id());
}

// Stores what a stream does with an event, and which event it is (ENUM-08).
aclError StoreEventTask(Stream& stream, Event& event, Task task, int64_t record = Model::kNoNode) {
  task.object_id = event.id();
  Model::Node* node = nullptr;
  aclError code = StoreTask(stream, task, record, &node);
  if (node != nullptr) node->event = {HandleRef::To(event.handle()), event.flags(), 0};
  return code;
}

// UPD-03: no event may be used on a stream between update begin and end.
aclError RefuseInUpdate(const char* call, const Stream& stream) {
  return Fail(ACL_ERROR_RT_TASK_TYPE_NOT_SUPPORT,
              "%s: between update begin and end only kernels may be launched on stream %u", call,
              stream.id());
}

aclError RefuseIpcEvent(const char* call) {
  return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
              "%s: an event between processes cannot be used in a stream that is bound to a model",
              call);
}

// In a bound stream of a built model every event is one live flag, which each execution looks at:
// the model may loop, so nobody knows which record a wait refers to.
aclError RecordInBuiltModel(Event& event, Stream& stream) {
  if (event.type() == EventType::kIpc) return RefuseIpcEvent("aclrtRecordEvent");
  event.recorded_in_model.store(true);
  Task task = event.ExternalRecordTask();
  // Nothing in the model can reset it, so each execution starts without it.
  if (event.type() == EventType::kEx || (event.flags() & ACL_EVENT_SYNC) == 0) {
    LiveFlag* live = event.Live();
    live->Retain();
    stream.built->live_events.push_back(live);
  }
  return StoreBuiltTask(stream, task);
}

aclError CaptureRecord(Event& event, Stream& stream) {
  constexpr const char* kCall = "aclrtRecordEvent";
  if (NeverCaptured(event)) return RefuseOldEvent(kCall, stream);
  if (event.type() == EventType::kExternal) {
    return StoreEventTask(stream, event, event.ExternalRecordTask());
  }
  if (!event.waitable()) return ACL_SUCCESS;  // CAP-44
  Model& model = *stream.capture;
  Model* owner = event.graph.load();
  if (owner != nullptr && owner != &model) return RefuseConflict(kCall, *owner, model);
  if (model.invalidated) return ACL_SUCCESS;
  Task task;
  task.kind = TaskKind::kEventRecord;
  task.name = "EVENT_RECORD";
  if (aclError code = StoreEventTask(stream, event, task); code != ACL_SUCCESS) return code;
  event.graph_node = static_cast<uint32_t>(model.nodes.size() - 1);
  event.graph_member = stream.capture_member;
  if (owner == nullptr) {
    model.events.push_back(&event);
    event.graph.store(&model, std::memory_order_release);
  }
  return ACL_SUCCESS;
}

// FORK: the stream joins the capture that the event belongs to (CAP-41, CAP-42).
aclError Fork(Stream& stream, Event& event) {
  constexpr const char* kCall = "aclrtStreamWaitEvent";
  Model& model = *event.graph.load();
  if (stream.is_default()) return RefuseDefaultStream(kCall, event);
  if (model.invalidated) {
    return Fail(ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED,
                "%s: the event belongs to a capture that was invalidated", kCall);
  }
  if ((stream.flags() & kStreamFlagsWithoutCapture) != 0) {
    Invalidate(model, false);
    return Fail(ACL_ERROR_RT_INTERNAL_ERROR,
                "%s: stream %u was created with flags 0x%x and cannot join a capture, which is "
                "invalidated",
                kCall, stream.id(), stream.flags());
  }
  if (&stream.context() != &model.context()) {
    Invalidate(model, false);
    return Fail(ACL_ERROR_RT_STREAM_CONTEXT,
                "%s: stream %u belongs to another context than the capture, which is invalidated",
                kCall, stream.id());
  }
  if (!JoinCapture(model, stream)) {
    Invalidate(model, true);
    return Fail(GetProfile().no_capture_stream_code,
                "%s: no stream left on device %d to store what stream %u captures; the capture is "
                "invalidated",
                kCall, model.context().device().id, stream.id());
  }
  return ACL_SUCCESS;
}

aclError CaptureWait(Stream& stream, Event& event, int64_t timeout_ns) {
  constexpr const char* kCall = "aclrtStreamWaitEvent";
  if (NeverCaptured(event)) return RefuseOldEvent(kCall, stream);
  if (event.type() == EventType::kExternal) {
    return StoreEventTask(stream, event, event.ExternalWaitTask(timeout_ns));
  }
  Model* owner = event.graph.load();
  if (owner == nullptr) {
    EventPoint* point = event.NewestPoint();
    if (point == nullptr) return ACL_SUCCESS;  // CAP-46
    point->Release();
    return Fail(
        ACL_ERROR_RT_CAPTURE_DEPENDENCY,
        "%s: stream %u is capturing and the event was recorded outside of the capture; wait "
        "for it before the capture begins",
        kCall, stream.id());
  }
  if (owner != stream.capture) return RefuseConflict(kCall, *owner, *stream.capture);
  Task task;
  task.kind = TaskKind::kEventWait;
  task.name = "EVENT_WAIT";
  return StoreEventTask(stream, event, task, event.graph_node);
}

}  // namespace

aclError RecordEvent(Event& event, Stream& stream) {
  constexpr const char* kCall = "aclrtRecordEvent";
  if (aclError code = event.FixRecordFlag(0, kCall); code != ACL_SUCCESS) return code;
  if (!stream.diverted() && event.graph.load(std::memory_order_acquire) == nullptr) {
    return event.Record(stream);
  }
  {
    std::lock_guard lock(CaptureLock());
    if (stream.capture != nullptr) return CaptureRecord(event, stream);
    if (event.graph.load() != nullptr && stream.is_default()) {
      return RefuseDefaultStream(kCall, event);
    }
    if (stream.built != nullptr) return RecordInBuiltModel(event, stream);
    if (stream.update != nullptr) return RefuseInUpdate(kCall, stream);
  }
  return event.Record(stream);  // CAP-53
}

aclError WaitEvent(Stream& stream, Event& event, int64_t timeout_ns) {
  constexpr const char* kCall = "aclrtStreamWaitEvent";
  if (aclError code = event.FixWaitFlag(0, kCall); code != ACL_SUCCESS) return code;
  if (!event.waitable()) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                "aclrtStreamWaitEvent: the event was created with flags 0x%x, which do not let "
                "streams wait for it",
                event.flags());
  }
  if (!stream.diverted() && event.graph.load(std::memory_order_acquire) == nullptr) {
    return event.Wait(stream, timeout_ns);
  }
  {
    std::lock_guard lock(CaptureLock());
    if (stream.capture == nullptr && event.graph.load() != nullptr) {
      if (aclError code = Fork(stream, event); code != ACL_SUCCESS) return code;
    }
    if (stream.capture != nullptr) return CaptureWait(stream, event, timeout_ns);
    if (stream.built != nullptr) {
      if (event.type() == EventType::kIpc) return RefuseIpcEvent(kCall);
      Task task = event.ExternalWaitTask(timeout_ns);
      return StoreBuiltTask(stream, task);
    }
    if (stream.update != nullptr) return RefuseInUpdate(kCall, stream);
  }
  return event.Wait(stream, timeout_ns);
}

aclError ResetEvent(Event& event, Stream& stream) {
  constexpr const char* kCall = "aclrtResetEvent";
  if (event.graph.load(std::memory_order_acquire) != nullptr && stream.is_default()) {
    return Fail(ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT,
                "%s: the event belongs to a capture, and the default stream cannot join one",
                kCall);
  }
  if (event.type() == EventType::kEx || event.type() == EventType::kIpc) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                "%s: an event made by aclrtCreateEventExWithFlag needs no reset and has none",
                kCall);
  }
  if (!event.waitable()) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                "%s: the event was created with flags 0x%x, which do not let it be reset", kCall,
                event.flags());
  }
  if (!stream.diverted()) return event.Reset(stream);
  {
    std::lock_guard lock(CaptureLock());
    if (stream.capture != nullptr) {
      if (event.type() == EventType::kOld) return RefuseOldEvent(kCall, stream);
      return StoreEventTask(stream, event, event.ExternalResetTask());
    }
    if (stream.built != nullptr) {
      if (event.type() == EventType::kOld && (event.flags() & ACL_EVENT_SYNC) == 0) {
        return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                    "%s: stream %u is bound to a model, where only events created with "
                    "ACL_EVENT_SYNC can be reset",
                    kCall, stream.id());
      }
      Task task = event.ExternalResetTask();
      return StoreBuiltTask(stream, task);
    }
    if (stream.update != nullptr) return RefuseInUpdate(kCall, stream);
  }
  return event.Reset(stream);
}

void ForgetCapturedEvent(Event& event) {
  if (event.graph.load(std::memory_order_acquire) == nullptr) return;
  std::lock_guard lock(CaptureLock());
  Model* model = event.graph.exchange(nullptr);
  if (model != nullptr) std::erase(model->events, &event);
}

void DeleteEvent(Event* event) {
  ForgetCapturedEvent(*event);
  delete event;
}

}  // namespace acltape::device
