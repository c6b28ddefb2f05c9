#include "replayer/acl_level/flat_walk.h"

#include <cstring>
#include <map>

namespace acltape::replayer::acl_level {

using analyzer::AclCall;
using analyzer::AclCallKind;

namespace {

constexpr int64_t kFlatStream = -1;  // not a stream id of the recording

}  // namespace

FlatWalk::FlatWalk(AclSession& session, WorkSink& sink)
    : AclWalk(session, sink),
      turns_(analyzer::OrderOfWork(session.program)),
      host_memory_(session.program, [&session](const std::string& digest) {
        return session.binder.Payload(digest);
      }) {}

void FlatWalk::Run() {
  std::map<int64_t, size_t> last_turns;  // by execution
  for (size_t i = 0; i < turns_.size(); ++i) last_turns[turns_[i].execution] = i;
  const auto total = static_cast<int64_t>(turns_.size());
  for (size_t i = 0; i < turns_.size(); ++i) {
    const int64_t execution = turns_[i].execution;
    Issue(turns_[i]);
    if (execution >= 0 && last_turns[execution] == i) {
      EndExecution(session_.program.calls[execution]);
    }
    if (session_.options.progress) session_.options.progress(static_cast<int64_t>(i) + 1, total);
  }
  sink_.Flush();
  session_.SynchronizeAll();
}

void FlatWalk::Issue(const analyzer::AclTurn& turn) {
  if (turn.waited) Wait();
  for (const int64_t arrived : turn.contents) Feed(session_.program.calls[arrived]);
  const AclCall& call = session_.program.calls[turn.call];
  if (turn.execution >= 0) {
    SubmitStored(call, turn.execution);
  } else if (analyzer::WaitsOnHost(call.kind())) {
    SyncWork(call);
  } else {
    for (AclTask& task : BindWithTakes(call)) sink_.Submit(kFlatStream, std::move(task));
  }
}

// A captured copy from pinned memory copies the content that the memory had when the graph was
// executed.
void FlatWalk::SubmitStored(const AclCall& call, int64_t execution) {
  session_.known.AddWrites(call);
  for (AclTask& task : session_.binder.BindStored(call)) {
    const analyzer::TensorUse* from = call.Use(analyzer::kCopyFrom);
    if (task.copy.kind == ACL_MEMCPY_HOST_TO_DEVICE && task.content == nullptr && from != nullptr) {
      const Bytes content = host_memory_.At(execution, from->tensor.buffer_id);
      const auto first = static_cast<size_t>(from->layout->FirstByte());
      if (content != nullptr && content->size() >= first + task.copy.bytes) {
        task.content = content;
        task.content_at = first;
        task.copy.from = nullptr;
      }
    }
    sink_.Submit(kFlatStream, std::move(task));
  }
}

void FlatWalk::EndExecution(const AclCall& call) {
  AclTask task;
  task.call = &call;
  task.work = AclTask::Work::kNothing;
  task.takes = TakesAfterExecution(call);
  if (!task.takes.empty()) sink_.Submit(kFlatStream, std::move(task));
}

void FlatWalk::Wait() {
  sink_.Flush();
  session_.WaitFor(kFlatStream);
}

int64_t FlatWalk::StreamOf(const AclCall&) const { return kFlatStream; }

void FlatWalk::FeedHost(const AclCall& call, int64_t buffer, int64_t first, const Bytes& bytes) {
  if (call.kind() == AclCallKind::kExecute) return;  // see SubmitStored
  std::memcpy(session_.rooms.Address(buffer, first), bytes->data(), bytes->size());
}

}  // namespace acltape::replayer::acl_level
