#include "runtime/device/capture/external.h"

#include "runtime/device/capture/capture.h"
#include "runtime/device/error.h"
#include "runtime/device/replay.h"

namespace acltape::device {
namespace {

// An external task does not hold its event: the launch says which one it means (EXT-04, EXT-05).
struct ExternalPayload {
  const Model* model;
  size_t index;  // in the model's externals
};

EventPoint* PointOf(void* argument) {
  auto* external = static_cast<ExternalPayload*>(argument);
  return external->model->current_launch()->bindings[external->index].point;
}

aclError RunExternalRecord(void* argument) {
  if (EventPoint* point = PointOf(argument)) point->Complete();
  return ACL_SUCCESS;
}

bool ExternalReady(void* argument) {
  EventPoint* point = PointOf(argument);
  return point == nullptr || point->done();
}

aclError RunExternalWait(void* argument) {
  EventPoint* point = PointOf(argument);
  return point == nullptr || point->Wait(0) ? ACL_SUCCESS : ACL_ERROR_RT_STREAM_ABORT;
}

// EXT-01 to EXT-03.
aclError Check(const Event& event, const Stream& stream, const char* call) {
  if (event.type() != EventType::kEx || event.flags() != ACL_EVENT_SYNC) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                "%s: external records and waits need an event made by aclrtCreateEventExWithFlag "
                "with flag ACL_EVENT_SYNC alone",
                call);
  }
  if (stream.capture == nullptr) {
    return Fail(ACL_ERROR_RT_STREAM_NOT_CAPTURED,
                "%s: stream %u is not capturing; outside of captures the flag is 0", call,
                stream.id());
  }
  if (stream.capture->kind() == Model::Kind::kSubGraph) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                "%s: stream %u captures a sub-graph, which has no external events", call,
                stream.id());
  }
  for (const Model::External& external : stream.capture->externals) {
    if (external.event.block != event.handle()) continue;
    return Fail(ACL_ERROR_RT_PARAM_INVALID,
                "%s: the graph has an external record or wait of this event already", call);
  }
  return ACL_SUCCESS;
}

aclError Store(Event& event, Stream& stream, bool record, const char* call) {
  std::lock_guard lock(CaptureLock());
  if (aclError code = Check(event, stream, call); code != ACL_SUCCESS) return code;
  Model& model = *stream.capture;
  ExternalPayload payload{&model, model.externals.size()};
  Task task = record ? MakeTask(TaskKind::kEventRecord, "EVENT_RECORD", payload, RunExternalRecord)
                     : MakeTask(TaskKind::kEventWait, "EVENT_WAIT", payload, RunExternalWait);
  if (!record) task.ready = ExternalReady;
  task.object_id = event.id();
  HandleRef reference = HandleRef::To(event.handle());
  Model::Node* node = nullptr;
  aclError code = StoreTask(stream, task, Model::kNoNode, &node);
  if (node == nullptr) return code;
  node->event = {reference, event.flags(), 1};
  model.externals.push_back({reference, record});
  return ACL_SUCCESS;
}

}  // namespace

aclError RecordExternal(Event& event, Stream& stream) {
  return Store(event, stream, true, "aclrtRecordEventWithFlag");
}

aclError WaitExternal(Stream& stream, Event& event) {
  return Store(event, stream, false, "aclrtStreamWaitEventWithFlag");
}

}  // namespace acltape::device
