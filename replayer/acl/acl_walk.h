// The walk over the calls of an ACL program. Both ways of treating streams share it: it decides
// which calls are issued and which are only counted, and it supplies contents from the recording
// and the copies that the host makes.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "replayer/acl/acl_session.h"
#include "replayer/acl/wait_edits.h"
#include "replayer/acl/work_sink.h"

namespace acltape::replayer {

class AclWalk {
 public:
  // `edits` may be null.
  AclWalk(AclSession& session, WorkSink& sink, WaitEdits* edits = nullptr)
      : session_(session), sink_(sink), edits_(edits) {}
  virtual ~AclWalk() = default;

  void Run();

 protected:
  using Call = analyzer::AclCall;

  // Issues stream work outside of captures: operators, copies, fills, value writes.
  virtual void Work(const Call& call) = 0;
  // Handles stream work inside a capture of the program.
  virtual void StoredWork(const Call& call) = 0;
  // Handles the launches of a task update.
  virtual void UpdatedWork(const Call& call) = 0;
  // Handles calls about streams, events, graphs, and waits between streams.
  virtual void Control(const Call& call) = 0;
  // Makes the host wait for a stream (0: for all streams), or for an event.
  virtual void WaitForStream(const Call& call, int64_t stream) = 0;
  virtual void WaitForEvent(const Call& call, int64_t event) = 0;
  // Puts content into pinned host memory, from byte `first` of the buffer on, before `call` needs
  // it.
  virtual void FeedHost(const Call& call, int64_t buffer, int64_t first, const Bytes& bytes) = 0;
  virtual void Finish() {}

  // Makes the tasks of a call, with the contents to take after them. Adds the bytes that the call
  // writes to the known bytes.
  std::vector<AclTask> BindWithTakes(const Call& call);
  // Adds the bytes that the graph of an execution writes to the known bytes. Returns the contents
  // to take after it.
  std::vector<Take> TakesAfterExecution(const Call& call);

  AclSession& session_;
  WorkSink& sink_;

 private:
  WaitEdits* edits_;

  void Issue(const Call& call);
  void WaitOnHost(const Call& call);
  void Feed(const Call& call);
  void SyncWork(const Call& call);
  void CountOnly(const Call& call);
};

}  // namespace acltape::replayer
