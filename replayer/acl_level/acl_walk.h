// The part that both walks over an ACL program share: contents from the recording, the copies for
// which the host waits, and the contents to read back after work.
#pragma once

#include <cstdint>
#include <vector>

#include "replayer/acl_level/acl_session.h"
#include "replayer/acl_level/work_sink.h"

namespace acltape::replayer::acl_level {

// Counts what a replay does with each call of the program. `together`: the other ranks are there.
void CountCalls(const analyzer::AclProgram& program, bool together, AclReport& counts);

class AclWalk {
 public:
  AclWalk(AclSession& session, WorkSink& sink) : session_(session), sink_(sink) {}
  virtual ~AclWalk() = default;

 protected:
  using Call = analyzer::AclCall;

  // Puts content into pinned host memory, from byte `first` of the buffer on, before `call` needs
  // it.
  virtual void FeedHost(const Call& call, int64_t buffer, int64_t first, const Bytes& bytes) = 0;

  // The stream of the replay on which the work of `call` runs.
  virtual int64_t StreamOf(const Call& call) const = 0;

  // Supplies contents that no recorded call wrote.
  void Feed(const Call& call);
  // Runs copies and fills for which the host waits. They do not wait for streams (rule CPY-04).
  void SyncWork(const Call& call);
  // Makes the tasks of a call, with the contents to take after them. Adds the bytes that the call
  // writes to the known bytes.
  std::vector<AclTask> BindWithTakes(const Call& call);
  // Adds the bytes that the graph of an execution writes to the known bytes. Returns the contents
  // to take after it.
  std::vector<Take> TakesAfterExecution(const Call& call);

  AclSession& session_;
  WorkSink& sink_;

 private:
  void FeedDevice(const Call& call, const storage::Snapshot& snapshot, int64_t first,
                  const Bytes& bytes);
};

}  // namespace acltape::replayer::acl_level
