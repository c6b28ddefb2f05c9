// A walk that issues streams, events, captures and executions as the program did.
#pragma once

#include <map>

#include "replayer/acl_level/acl_walk.h"
#include "replayer/acl_level/model_parts.h"
#include "replayer/acl_level/wait_edits.h"

namespace acltape::replayer::acl_level {

class RecordedWalk final : public AclWalk {
 public:
  // `edits` may be null.
  RecordedWalk(AclSession& session, WorkSink& sink, WaitEdits* edits)
      : AclWalk(session, sink), edits_(edits), parts_(session) {}
  void Run();

 private:
  void Issue(const Call& call);
  // Stream work outside of captures: operators, copies, fills, value writes.
  void Work(const Call& call);
  // Stream work inside a capture of the program.
  void StoredWork(const Call& call);
  // The launches of a task update.
  void UpdatedWork(const Call& call);
  void IssueDirectly(const Call& call, AclTask& task);
  // Calls about streams, events, graphs, and waits between streams.
  void Control(const Call& call);
  void EventWork(const Call& call);
  void OnStream(const Call& call, aclrtStream stream);
  void BeginCapture(const Call& call, aclrtStream stream);
  void EndCapture(const Call& call, aclrtStream stream);
  void WaitForValue(const Call& call, aclrtStream stream);
  void Execute(const Call& call);
  void ExecuteNow(const Call& call);
  const CapturedGraph& GraphOf(const Call& call) const;
  void WaitOnHost(const Call& call);
  // Makes the host wait for a stream (0: for all streams), or for an event.
  void WaitForStream(int64_t stream);
  void WaitForEvent(int64_t event);
  void FeedHost(const Call& call, int64_t buffer, int64_t first, const Bytes& bytes) override;
  int64_t StreamOf(const Call& call) const override { return call.stream(); }

  WaitEdits* edits_;
  ModelParts parts_;
  // The stream on which each graph of the program runs. The graph may still read pinned memory
  // there.
  std::map<int64_t, int64_t> running_;  // model to stream
};

}  // namespace acltape::replayer::acl_level
