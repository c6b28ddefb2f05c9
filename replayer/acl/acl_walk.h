// The walk over the calls of an ACL program that both ways of treating streams share: what is
// issued, what is skipped and counted, contents that the recording gives, copies of the host.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "replayer/acl/acl_session.h"
#include "replayer/acl/work_sink.h"

namespace acltape::replayer {

class AclWalk {
 public:
  AclWalk(AclSession& session, WorkSink& sink) : session_(session), sink_(sink) {}
  virtual ~AclWalk() = default;

  void Run();

 protected:
  using Call = analyzer::AclCall;

  // Stream work that runs by itself: operators, copies, fills, value writes.
  virtual void Work(const Call& call) = 0;
  // The same inside a capture of the program.
  virtual void StoredWork(const Call& call) = 0;
  // The launches of a task update.
  virtual void UpdatedWork(const Call& call) = 0;
  // Streams, events, graphs, waits of streams.
  virtual void Control(const Call& call) = 0;
  // The host waits until the stream (or all, for 0) or the event is done.
  virtual void WaitForStream(const Call& call, int64_t stream) = 0;
  virtual void WaitForEvent(const Call& call, int64_t event) = 0;
  // Content that pinned host memory must have for a call, from byte `first` of the buffer on.
  virtual void FeedHost(const Call& call, int64_t buffer, int64_t first, const Bytes& bytes) = 0;
  virtual void Finish() {}

  // The tasks of a call with what to take after them. Marks what it writes as known.
  std::vector<AclTask> BindWithTakes(const Call& call);
  // Marks what the graph of an execution writes, and says what to take after it.
  std::vector<Take> TakesAfterExecution(const Call& call);

  AclSession& session_;
  WorkSink& sink_;

 private:
  void Issue(const Call& call);
  void WaitOnHost(const Call& call);
  void Feed(const Call& call);
  void SyncWork(const Call& call);
  void CountOnly(const Call& call);
};

}  // namespace acltape::replayer
