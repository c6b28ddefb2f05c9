#include "replayer/acl/acl_walk.h"

namespace acltape::replayer {

using analyzer::AclCall;
using analyzer::AclCallKind;
using analyzer::AclFate;

void AclWalk::Run() {
  AclReport& counts = session_.report.acl;
  const auto total = static_cast<int64_t>(session_.program.calls.size());
  for (const AclCall& call : session_.program.calls) {
    if (call.fate == AclFate::kFailed) {
      ++counts.failed;
    } else if (call.fate == AclFate::kAbandoned) {
      ++counts.abandoned;
    } else {
      if (edits_ != nullptr) edits_->Before(call.call.call_id, sink_);
      Issue(call);
      if (edits_ != nullptr) edits_->Behind(call.call.call_id, sink_);
    }
    if (session_.options.progress) session_.options.progress(call.index + 1, total);
  }
  Finish();
  sink_.Flush();
  session_.SynchronizeAll();
}

void AclWalk::CountOnly(const AclCall& call) {
  AclReport& counts = session_.report.acl;
  switch (call.kind()) {
    case AclCallKind::kHostFunction:
      ++counts.host_functions;
      return;
    case AclCallKind::kMemory:
      ++counts.memory_calls;
      return;
    case AclCallKind::kUnknown:
      ++counts.unknown[call.op->FullName()];
      return;
    default:
      ++counts.without_effect;
      return;
  }
}

void AclWalk::Issue(const AclCall& call) {
  const AclCallKind kind = call.kind();
  if (kind >= AclCallKind::kHostFunction) {
    CountOnly(call);
    return;
  }
  Feed(call);
  if (kind == AclCallKind::kOperator || kind == AclCallKind::kCopyAsync ||
      kind == AclCallKind::kCopy2dAsync || kind == AclCallKind::kFillAsync ||
      kind == AclCallKind::kFill32Async || kind == AclCallKind::kValueWrite) {
    if (call.call.model_id != 0) {
      StoredWork(call);
    } else if (call.group >= 0) {
      UpdatedWork(call);
    } else {
      Work(call);
    }
  } else if (analyzer::WaitsOnHost(kind) && kind != AclCallKind::kStreamDestroy) {
    WaitOnHost(call);
    return;
  } else {
    Control(call);
  }
  ++session_.report.acl.issued;
}

// A query that reported "ended" counts as a wait, because the program may rely on it in the same
// way.
void AclWalk::WaitOnHost(const AclCall& call) {
  AclReport& counts = session_.report.acl;
  const int64_t object = call.Integer(call.function->object);
  const bool ended = call.Integer(call.function->detail) == call.function->done;
  switch (call.kind()) {
    case AclCallKind::kDeviceSync:
      WaitForStream(call, 0);
      break;
    case AclCallKind::kStreamSync:
      WaitForStream(call, call.stream());
      break;
    case AclCallKind::kEventSync:
      WaitForEvent(call, object);
      break;
    case AclCallKind::kStreamQuery:
    case AclCallKind::kEventQuery:
      if (!ended) {
        ++counts.without_effect;
        return;
      }
      if (call.kind() == AclCallKind::kStreamQuery) {
        WaitForStream(call, call.stream());
      } else {
        WaitForEvent(call, object);
      }
      break;
    case AclCallKind::kEventTime:
      WaitForEvent(call, object);
      if (call.function->detail >= 0) WaitForEvent(call, call.Integer(call.function->detail));
      break;
    default:
      SyncWork(call);
      break;
  }
  ++counts.issued;
}

// Runs copies and fills for which the host waits. They do not wait for streams (rule CPY-04).
void AclWalk::SyncWork(const AclCall& call) {
  sink_.Flush();
  for (const AclTask& task : BindWithTakes(call)) {
    HostSides host;
    std::vector<uint8_t> landing;
    if (task.content != nullptr) host.from = task.content->data() + task.content_at;
    if (task.work == AclTask::Work::kDownload && task.to == nullptr) {
      landing.resize(task.HostBytes());
      host.to = landing.data();
    }
    RunTaskNow(session_.device, task, host);
    if (!session_.compare) continue;
    for (const Take& take : task.takes) {
      if (take.host) {
        session_.verifier.Check(take, take.address);
        continue;
      }
      std::vector<uint8_t> bytes(take.bytes);
      AclTask download;
      download.work = AclTask::Work::kDownload;
      download.from = take.address;
      download.bytes = take.bytes;
      download.rows = take.rows;
      download.width = take.width;
      download.from_pitch = take.from_pitch;
      download.to_pitch = take.to_pitch;
      RunTaskNow(session_.device, download, {nullptr, bytes.data()});
      session_.verifier.Check(take, bytes.data());
    }
  }
}

// Supplies contents that no recorded call wrote.
void AclWalk::Feed(const AclCall& call) {
  for (const storage::Snapshot& snapshot : call.before) {
    if (snapshot.position >= 0 || snapshot.tensor.buffer_id == 0) continue;
    if (session_.program.buffers.count(snapshot.tensor.buffer_id) == 0) continue;
    const Bytes bytes = session_.binder.Payload(snapshot.digest);
    if (bytes == nullptr) continue;
    const int64_t first = session_.program.trace->GetLayout(snapshot.tensor.layout_id).FirstByte();
    if (session_.rooms.Of(snapshot.tensor.buffer_id).host) {
      FeedHost(call, snapshot.tensor.buffer_id, first, bytes);
    } else {
      // If the buffer is read for the first time, no earlier work can still use it, and no wait is
      // needed.
      if (snapshot.changed || !session_.known.Of(snapshot.tensor.buffer_id).empty()) {
        sink_.Flush();
        if (session_.MayWait()) session_.SynchronizeAll();
      }
      AclTask task;
      task.work = AclTask::Work::kUpload;
      task.to = session_.rooms.Address(snapshot.tensor.buffer_id, first);
      task.bytes = bytes->size();
      RunTaskNow(session_.device, task, {bytes->data(), nullptr});
    }
    session_.known.Add(snapshot.tensor.buffer_id, first,
                       first + static_cast<int64_t>(bytes->size()));
  }
}

std::vector<AclTask> AclWalk::BindWithTakes(const AclCall& call) {
  std::vector<AclTask> tasks = session_.binder.Bind(call);
  session_.known.AddWrites(call);
  const bool substituted = call.kind() == AclCallKind::kOperator && !tasks.empty() &&
                           tasks.front().work != AclTask::Work::kOperator;
  if (session_.compare && !tasks.empty() && !substituted) {
    tasks.back().takes = session_.verifier.TakesOf(call, session_.known);
  }
  return tasks;
}

std::vector<Take> AclWalk::TakesAfterExecution(const AclCall& call) {
  const auto model = session_.program.models.find(call.Integer(call.function->object));
  if (model == session_.program.models.end()) return {};
  KnownBytes written;
  for (const int64_t stored : model->second.calls) {
    session_.known.AddWrites(session_.program.calls[stored]);
    written.AddAllWrites(session_.program.calls[stored]);
  }
  if (!session_.compare) return {};
  return session_.verifier.TakesOf(call, session_.known, written);
}

}  // namespace acltape::replayer
