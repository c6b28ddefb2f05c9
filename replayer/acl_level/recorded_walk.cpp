#include "replayer/acl_level/recorded_walk.h"

#include <cstring>

#include "generated/meaning/parameter_positions.h"

namespace acltape::replayer::acl_level {

using analyzer::AclCall;
using analyzer::AclCallKind;

void RecordedWalk::Run() {
  const auto total = static_cast<int64_t>(session_.program.calls.size());
  session_.handles.SetOlderObjects();
  for (const AclCall& call : session_.program.calls) {
    if (call.fate == analyzer::AclFate::kIssued && call.kind() < AclCallKind::kHostFunction) {
      if (edits_ != nullptr) edits_->Before(call.call.call_id, sink_);
      Issue(call);
      if (edits_ != nullptr) edits_->After(call.call.call_id, sink_);
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
  } else if (!analyzer::ChangesMemory(kind)) {
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
    case AclCallKind::kExecuteNow:
      ExecuteNow(call);
      return;
    default:
      SyncWork(call);
      return;
  }
}

void RecordedWalk::Work(const AclCall& call) {
  for (AclTask& task : BindWithTakes(call)) sink_.Submit(call.stream(), std::move(task));
  // The program relies on the wait in what it does next, on other streams and by the host.
  if (call.IsPageableCopy()) WaitForStream(call.stream());
}

void RecordedWalk::IssueDirectly(const AclCall& call, AclTask& task) {
  if (const size_t bytes = task.LandingBytes(); bytes != 0) {
    task.copy.to = session_.in_flight.Piece(call.stream(), bytes);
  }
  session_.Issue(call.stream(), task, AclSession::Workspaces::kOwn);
}

void RecordedWalk::StoredWork(const AclCall& call) {
  for (AclTask& task : session_.binder.BindStored(call)) {
    if (task.content != nullptr) {
      throw Error(ErrorKind::kTrace, session_.program.Describe(call) +
                                         " of a captured graph cannot run on this device; see the "
                                         "note on its operator");
    }
    IssueDirectly(call, task);
  }
}

void RecordedWalk::UpdatedWork(const AclCall& call) {
  session_.known.AddKnownWrites(call);
  for (AclTask& task : session_.binder.BindStored(call)) IssueDirectly(call, task);
}

void RecordedWalk::EventWork(const AclCall& call) {
  AclTask task;
  task.work = call.kind() == AclCallKind::kEventRecord ? AclTask::Work::kRecord
              : call.kind() == AclCallKind::kEventWait ? AclTask::Work::kWait
                                                       : AclTask::Work::kReset;
  task.event = call.Integer(call.function->object);
  if (call.call.model_id == 0 && !session_.program.IsExternal(call)) {
    sink_.Submit(call.stream(), std::move(task));
    return;
  }
  sink_.Flush();
  if (analyzer::IsExternalFlag(call.Integer(call.function->detail))) {
    task.flag = ACL_EVENT_WAIT_EXTERNAL;
  }
  IssueDirectly(call, task);
}

void RecordedWalk::Control(const AclCall& call) {
  switch (call.kind()) {
    case AclCallKind::kStreamCreate:
    case AclCallKind::kEventCreate:
    case AclCallKind::kNotifyCreate:
      session_.handles.Create(call);
      return;
    case AclCallKind::kEventRecord:
    case AclCallKind::kEventWait:
    case AclCallKind::kEventReset:
      EventWork(call);
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
    default:
      OnStream(call, session_.handles.Stream(call.stream()));
      return;
  }
}

void RecordedWalk::OnStream(const AclCall& call, aclrtStream stream) {
  const DeviceWork& work = session_.device.work();
  const int64_t object = call.Integer(call.function->object);
  switch (call.kind()) {
    case AclCallKind::kNotifyRecord:
      work.RecordNotify(session_.handles.Notify(object), stream).Check();
      return;
    case AclCallKind::kNotifyWait:
      work.WaitNotify(session_.handles.Notify(object), stream).Check();
      return;
    case AclCallKind::kValueWait:
      WaitForValue(call, stream);
      return;
    case AclCallKind::kCaptureBegin:
      BeginCapture(call, stream);
      return;
    case AclCallKind::kCaptureEnd:
      EndCapture(call, stream);
      return;
    case AclCallKind::kGroupBegin:
      work.BeginGroup(stream).Check();
      return;
    case AclCallKind::kGroupEnd:
      work.EndGroup(stream, &session_.handles.groups[call.group]).Check();
      return;
    case AclCallKind::kUpdateBegin:
      work.BeginUpdate(stream, session_.handles.groups[call.group]).Check();
      return;
    case AclCallKind::kUpdateEnd:
      work.EndUpdate(stream).Check();
      return;
    case AclCallKind::kExecute:
      Execute(call);
      return;
    default:
      parts_.Make(call);
      return;
  }
}

void RecordedWalk::WaitForValue(const AclCall& call, aclrtStream stream) {
  namespace wait_for = meaning::position::aclrtValueWait;
  const analyzer::TensorUse* word = call.Use(wait_for::kDevAddr);
  if (word == nullptr || session_.program.unreleased_waits.count(call.index) != 0) return;
  session_.device.work()
      .WaitForValue(session_.rooms.Address(word->tensor.buffer_id, word->layout->FirstByte()),
                    static_cast<uint64_t>(call.Integer(wait_for::kValue)),
                    static_cast<uint32_t>(call.Integer(wait_for::kFlag)), stream)
      .Check();
}

// One thread issues what several did; the mode decides only what is allowed meanwhile.
void RecordedWalk::BeginCapture(const AclCall& call, aclrtStream stream) {
  Capture& capture =
      session_.captures.try_emplace(call.stream(), session_.device, stream).first->second;
  if (call.function->variant == analyzer::AclVariant::kSubGraph) {
    capture.BeginInto(parts_.SubGraph(call, call.Integer(call.function->object)));
  } else {
    capture.Begin();
  }
}

void RecordedWalk::EndCapture(const AclCall& call, aclrtStream stream) {
  auto capture = session_.captures.extract(call.stream());
  if (!capture.empty() && capture.mapped().IsIntoSubGraph()) {
    capture.mapped().EndInto();
    return;
  }
  session_.handles.models[call.Integer(call.function->object)] =
      capture.empty() ? Capture(session_.device, stream).End() : capture.mapped().End();
}

const CapturedGraph& RecordedWalk::GraphOf(const AclCall& call) const {
  const auto graph = session_.handles.models.find(call.Integer(call.function->object));
  if (graph != session_.handles.models.end()) return graph->second;
  throw Error(ErrorKind::kTrace, session_.program.Describe(call) +
                                     " executes a graph whose capture the trace does not hold");
}

void RecordedWalk::ExecuteNow(const AclCall& call) {
  sink_.Flush();
  const DeviceWork& work = session_.device.work();
  const auto timeout = static_cast<int32_t>(call.Integer(call.function->detail));
  work.ExecuteNow(GraphOf(call).handle(), timeout).Check();
  for (const Take& take : TakesAfterExecution(call)) {
    std::vector<uint8_t> bytes(take.host ? 0 : take.copy.bytes);
    if (!take.host) IssueTake(work, take, bytes.data(), kNow);
    session_.verifier.Check(take, take.host ? take.copy.from : bytes.data());
  }
}

void RecordedWalk::Execute(const AclCall& call) {
  aclrtStream stream = session_.handles.Stream(call.stream());
  GraphOf(call).Execute(stream);
  running_[call.Integer(call.function->object)] = call.stream();
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
  } else {
    session_.WaitFor(stream);
  }
}

void RecordedWalk::WaitForEvent(int64_t event) {
  sink_.Flush();
  session_.WaitForEvent(event);
}

}  // namespace acltape::replayer::acl_level
