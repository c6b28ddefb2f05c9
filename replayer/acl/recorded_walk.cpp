#include "replayer/acl/recorded_walk.h"

#include <cstring>

namespace acltape::replayer {

using analyzer::AclCall;
using analyzer::AclCallKind;

void RecordedWalk::Run() {
  const auto total = static_cast<int64_t>(session_.program.calls.size());
  for (const AclCall& call : session_.program.calls) {
    if (call.fate == analyzer::AclFate::kIssued && call.kind() < AclCallKind::kHostFunction) {
      if (edits_ != nullptr) edits_->Before(call.call.call_id, sink_);
      Issue(call);
      if (edits_ != nullptr) edits_->Behind(call.call.call_id, sink_);
    }
    if (session_.options.progress) session_.options.progress(call.index + 1, total);
  }
  sink_.Flush();
  session_.SynchronizeAll();
}

void RecordedWalk::Issue(const AclCall& call) {
  const AclCallKind kind = call.kind();
  Feed(call);
  if (analyzer::WaitsOnHost(kind) && kind != AclCallKind::kStreamDestroy) {
    WaitOnHost(call);
  } else if (!analyzer::IsDeviceWork(kind) || kind == AclCallKind::kValueWait) {
    Control(call);
  } else if (call.call.model_id != 0) {
    StoredWork(call);
  } else if (call.group >= 0) {
    UpdatedWork(call);
  } else {
    Work(call);
  }
}

// A query that reported "ended" counts as a wait, because the program may rely on it in the same
// way.
void RecordedWalk::WaitOnHost(const AclCall& call) {
  const int64_t object = call.Integer(call.function->object);
  const bool ended = call.Integer(call.function->detail) == call.function->done;
  switch (call.kind()) {
    case AclCallKind::kDeviceSync:
      WaitForStream(0);
      return;
    case AclCallKind::kStreamSync:
      WaitForStream(call.stream());
      return;
    case AclCallKind::kEventSync:
      WaitForEvent(object);
      return;
    case AclCallKind::kStreamQuery:
      if (ended) WaitForStream(call.stream());
      return;
    case AclCallKind::kEventQuery:
      if (ended) WaitForEvent(object);
      return;
    case AclCallKind::kEventTime:
      WaitForEvent(object);
      if (call.function->detail >= 0) WaitForEvent(call.Integer(call.function->detail));
      return;
    default:
      SyncWork(call);
      return;
  }
}

void RecordedWalk::Work(const AclCall& call) {
  for (AclTask& task : BindWithTakes(call)) sink_.Submit(call.stream(), std::move(task));
}

void RecordedWalk::IssueDirectly(const AclCall& call, const AclTask& task) {
  HostSides host;
  if (task.work == AclTask::Work::kDownload && task.to == nullptr) {
    host.to = session_.in_flight.Piece(call.stream(), task.HostBytes());
  }
  IssueTask(session_.device, session_.handles.Stream(call.stream()), task, host,
            [this](uint64_t bytes) { return session_.workspaces.Own(bytes); });
}

void RecordedWalk::StoredWork(const AclCall& call) {
  for (const AclTask& task : session_.binder.BindStored(call)) {
    if (task.content != nullptr) {
      throw Error(ErrorKind::kTrace, session_.program.Describe(call) +
                                         " of a captured graph cannot run on this device; see the "
                                         "note on its operator");
    }
    IssueDirectly(call, task);
  }
}

void RecordedWalk::UpdatedWork(const AclCall& call) {
  session_.known.AddWrites(call);
  for (const AclTask& task : session_.binder.BindStored(call)) IssueDirectly(call, task);
}

void RecordedWalk::Event(const AclCall& call) {
  const int64_t stream = call.stream();
  const int64_t event = call.Integer(call.function->object);
  const bool external = session_.program.IsExternal(call);
  if (call.call.model_id == 0 && !external) {
    if (call.kind() == AclCallKind::kEventRecord) sink_.Record(stream, event);
    if (call.kind() == AclCallKind::kEventWait) sink_.Wait(stream, event);
    if (call.kind() == AclCallKind::kEventReset) sink_.Reset(stream, event);
    return;
  }
  sink_.Flush();
  const acl::Api& api = session_.device.api();
  aclrtEvent handle = session_.handles.Event(event);
  aclrtStream on = session_.handles.Stream(stream);
  const bool flagged = call.Integer(call.function->detail) == analyzer::kExternalWait;
  if (call.kind() == AclCallKind::kEventRecord && flagged) {
    session_.device.Check(Needed(api.aclrtRecordEventWithFlag, session_.program, call)(
                              handle, on, analyzer::kExternalWait),
                          "aclrtRecordEventWithFlag");
  } else if (call.kind() == AclCallKind::kEventWait && flagged) {
    session_.device.Check(Needed(api.aclrtStreamWaitEventWithFlag, session_.program, call)(
                              on, handle, 0, analyzer::kExternalWait),
                          "aclrtStreamWaitEventWithFlag");
  } else if (call.kind() == AclCallKind::kEventRecord) {
    session_.device.Check(api.aclrtRecordEvent(handle, on), "aclrtRecordEvent");
  } else if (call.kind() == AclCallKind::kEventWait) {
    session_.device.Check(api.aclrtStreamWaitEvent(on, handle), "aclrtStreamWaitEvent");
  } else {
    session_.device.Check(api.aclrtResetEvent(handle, on), "aclrtResetEvent");
  }
}

void RecordedWalk::Control(const AclCall& call) {
  const acl::Api& api = session_.device.api();
  const int64_t object = call.Integer(call.function->object);
  switch (call.kind()) {
    case AclCallKind::kStreamCreate:
    case AclCallKind::kEventCreate:
    case AclCallKind::kNotifyCreate:
      session_.handles.Create(call);
      return;
    case AclCallKind::kEventRecord:
    case AclCallKind::kEventWait:
    case AclCallKind::kEventReset:
      Event(call);
      return;
    default:
      break;
  }
  sink_.Flush();
  switch (call.kind()) {
    case AclCallKind::kStreamDestroy:
      if (!IsForced(call)) WaitForStream(call.stream());
      session_.handles.Destroy(call);
      return;
    case AclCallKind::kEventDestroy:
    case AclCallKind::kNotifyDestroy:
    case AclCallKind::kModelDestroy:
      session_.handles.Destroy(call);
      return;
    case AclCallKind::kNotifyRecord:
      session_.device.Check(
          Needed(api.aclrtRecordNotify, session_.program, call)(
              session_.handles.Notify(object), session_.handles.Stream(call.stream())),
          "aclrtRecordNotify");
      return;
    case AclCallKind::kNotifyWait:
      session_.device.Check(
          Needed(api.aclrtWaitAndResetNotify, session_.program, call)(
              session_.handles.Notify(object), session_.handles.Stream(call.stream()), 0),
          "aclrtWaitAndResetNotify");
      return;
    case AclCallKind::kValueWait: {
      const analyzer::AclUse* at = call.Use(0);
      if (at == nullptr) return;
      session_.device.Check(
          Needed(api.aclrtValueWait, session_.program, call)(
              session_.rooms.Address(at->tensor.buffer_id, at->layout->FirstByte()),
              static_cast<uint64_t>(call.Integer(1)), static_cast<uint32_t>(call.Integer(2)),
              session_.handles.Stream(call.stream())),
          "aclrtValueWait");
      return;
    }
    default:
      Graph(call);
      return;
  }
}

void RecordedWalk::Graph(const AclCall& call) {
  const acl::Api& api = session_.device.api();
  aclrtStream stream = session_.handles.Stream(call.stream());
  const auto group = call.group;
  switch (call.kind()) {
    case AclCallKind::kCaptureBegin:
      // One thread issues what several did; the mode decides only what is allowed meanwhile.
      session_.captures.try_emplace(call.stream(), session_.device, stream).first->second.Begin();
      return;
    case AclCallKind::kCaptureEnd: {
      auto capture = session_.captures.extract(call.stream());
      session_.handles.models[call.Integer(call.function->object)] =
          capture.empty() ? Capture(session_.device, stream).End() : capture.mapped().End();
      return;
    }
    case AclCallKind::kGroupBegin:
      session_.device.Check(Needed(api.aclmdlRICaptureTaskGrpBegin, session_.program, call)(stream),
                            "aclmdlRICaptureTaskGrpBegin");
      return;
    case AclCallKind::kGroupEnd:
      session_.device.Check(Needed(api.aclmdlRICaptureTaskGrpEnd, session_.program, call)(
                                stream, &session_.handles.groups[group]),
                            "aclmdlRICaptureTaskGrpEnd");
      return;
    case AclCallKind::kUpdateBegin:
      session_.device.Check(Needed(api.aclmdlRICaptureTaskUpdateBegin, session_.program, call)(
                                stream, session_.handles.groups[group]),
                            "aclmdlRICaptureTaskUpdateBegin");
      return;
    case AclCallKind::kUpdateEnd:
      session_.device.Check(
          Needed(api.aclmdlRICaptureTaskUpdateEnd, session_.program, call)(stream),
          "aclmdlRICaptureTaskUpdateEnd");
      return;
    default:
      Execute(call);
      return;
  }
}

void RecordedWalk::Execute(const AclCall& call) {
  const int64_t model = call.Integer(call.function->object);
  const auto handle = session_.handles.models.find(model);
  if (handle == session_.handles.models.end()) {
    throw Error(ErrorKind::kTrace, session_.program.Describe(call) +
                                       " executes a graph whose capture the trace does not hold");
  }
  aclrtStream stream = session_.handles.Stream(call.stream());
  handle->second.Execute(stream);
  running_[model] = call.stream();
  for (const Take& take : TakesAfterExecution(call)) {
    session_.Download(call.stream(), stream, take);
  }
}

void RecordedWalk::FeedHost(const AclCall& call, int64_t buffer, int64_t first,
                            const Bytes& bytes) {
  uint8_t* room = session_.rooms.Address(buffer, first);
  if (std::memcmp(room, bytes->data(), bytes->size()) == 0) return;
  // When the program wrote this memory, it knew that the previous execution had finished reading
  // it.
  sink_.Flush();
  const auto running = running_.find(call.Integer(call.function->object));
  if (running != running_.end()) WaitForStream(running->second);
  std::memcpy(room, bytes->data(), bytes->size());
}

void RecordedWalk::WaitForStream(int64_t stream) {
  sink_.Flush();
  if (stream == 0) {
    session_.SynchronizeAll();
    return;
  }
  session_.CheckWait(session_.device.api().aclrtSynchronizeStream(session_.handles.Stream(stream)),
                     "aclrtSynchronizeStream");
  session_.in_flight.Synced(stream);
}

void RecordedWalk::WaitForEvent(int64_t event) {
  sink_.Flush();
  session_.CheckWait(session_.device.api().aclrtSynchronizeEvent(session_.handles.Event(event)),
                     "aclrtSynchronizeEvent");
}

}  // namespace acltape::replayer
