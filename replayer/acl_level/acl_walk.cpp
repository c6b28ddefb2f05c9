#include "replayer/acl_level/acl_walk.h"

namespace acltape::replayer::acl_level {

using analyzer::AclCall;
using analyzer::AclCallKind;
using analyzer::AclFate;

void CountCalls(const analyzer::AclProgram& program, bool together, AclReport& counts) {
  for (const AclCall& call : program.calls) {
    const AclCallKind kind = call.kind();
    const bool query = kind == AclCallKind::kStreamQuery || kind == AclCallKind::kEventQuery;
    if (call.fate == AclFate::kFailed) {
      ++counts.failed;
    } else if (call.fate == AclFate::kAbandoned) {
      ++counts.abandoned;
    } else if (call.fate == AclFate::kForeign) {
      ++counts.without_effect;
    } else if (kind == AclCallKind::kHostFunction) {
      ++counts.host_functions;
    } else if (analyzer::IsMemoryCall(kind)) {
      ++counts.memory_calls;
    } else if (kind == AclCallKind::kLeftOut ||
               (!together && analyzer::IsCapturedCollective(call))) {
      ++counts.left_out[call.op->FullName()];
    } else if (program.unreleased_waits.count(call.index) != 0) {
      ++counts.unreleased_waits;
    } else if (kind == AclCallKind::kUnknown) {
      ++counts.unknown[call.op->FullName()];
    } else if (kind > AclCallKind::kHostFunction ||
               (query && call.Integer(call.function->detail) != call.function->done)) {
      ++counts.without_effect;
    } else {
      ++counts.issued;
      counts.executions += analyzer::IsExecution(kind);
    }
  }
}

void AclWalk::SyncWork(const AclCall& call) {
  sink_.Flush();
  const DeviceWork& work = session_.device.work();
  for (AclTask& task : BindWithTakes(call)) {
    std::vector<uint8_t> landing(task.LandingBytes());
    if (task.content != nullptr) task.copy.from = task.Content();
    if (!landing.empty()) task.copy.to = landing.data();
    IssueMemoryWork(work, task, kNow);
    if (!session_.compare) continue;
    for (const Take& take : task.takes) {
      std::vector<uint8_t> bytes(take.host ? 0 : take.copy.bytes);
      if (!take.host) IssueTake(work, take, bytes.data(), kNow);
      session_.verifier.Check(take, take.host ? take.copy.from : bytes.data());
    }
  }
}

void AclWalk::Feed(const AclCall& call) {
  for (const storage::Snapshot& snapshot : call.before) {
    if (snapshot.position >= 0 || snapshot.tensor.buffer_id == 0) continue;
    if (session_.program.buffers.count(snapshot.tensor.buffer_id) == 0) continue;
    const Bytes bytes = session_.binder.Payload(snapshot.digest);
    if (bytes == nullptr) continue;
    const int64_t first = session_.program.trace->GetLayout(snapshot.tensor.layout_id).FirstByte();
    if (session_.rooms.IsHost(snapshot.tensor.buffer_id)) {
      FeedHost(call, snapshot.tensor.buffer_id, first, bytes);
    } else {
      FeedDevice(call, snapshot, first, bytes);
    }
    session_.known.Add(snapshot.tensor.buffer_id, first,
                       first + static_cast<int64_t>(bytes->size()));
  }
}

// Work that was issued before may still read what the memory held until then. If the host may not
// wait for it, the content goes to the memory in the order of the call's stream, as the recorder
// has read it.
void AclWalk::FeedDevice(const AclCall& call, const storage::Snapshot& snapshot, int64_t first,
                         const Bytes& bytes) {
  const int64_t buffer = snapshot.tensor.buffer_id;
  const bool used_before = snapshot.changed || !session_.known.Of(buffer).empty();
  AclTask task;
  task.call = &call;
  task.work = AclTask::Work::kCopy;
  task.copy = {session_.rooms.Address(buffer, first), nullptr, ACL_MEMCPY_HOST_TO_DEVICE,
               bytes->size()};
  task.content = bytes;
  if (used_before && !session_.MayWait() && call.RunsOnItsStream()) {
    sink_.Submit(StreamOf(call), std::move(task));
    return;
  }
  if (used_before) {
    sink_.Flush();
    if (session_.MayWait()) session_.SynchronizeAll();
  }
  task.copy.from = task.Content();
  IssueMemoryWork(session_.device.work(), task, kNow);
}

std::vector<AclTask> AclWalk::BindWithTakes(const AclCall& call) {
  std::vector<AclTask> tasks = session_.binder.Bind(call);
  session_.known.AddWrites(call);
  const bool alone = session_.ranks == nullptr;
  const bool substituted = (alone && call.TakesFromRanks()) ||
                           (call.kind() == AclCallKind::kOperator && !tasks.empty() &&
                            tasks.front().work != AclTask::Work::kOperator);
  if (session_.compare && !tasks.empty() && !substituted) {
    tasks.back().takes = session_.verifier.TakesOf(call, session_.known);
  }
  return tasks;
}

std::vector<Take> AclWalk::TakesAfterExecution(const AclCall& call) {
  const analyzer::AclProgram& program = session_.program;
  const int64_t model = call.Integer(call.function->object);
  KnownBytes written(*program.trace, session_.ranks != nullptr);
  // The bytes that the device chose are not known. Bytes that only such a call writes are known if
  // they were known before.
  for (const int64_t stored : program.CertainCalls(model)) {
    session_.known.AddKnownWrites(program.calls[stored]);
  }
  for (const int64_t stored : program.StoredCalls(model)) {
    session_.known.SetDoubt(program.calls[stored]);
    written.AddAllWrites(program.calls[stored]);
  }
  if (!session_.compare) return {};
  return session_.verifier.TakesOf(call, session_.known, written);
}

}  // namespace acltape::replayer::acl_level
