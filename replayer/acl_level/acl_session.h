// The state that every way to replay an ACL program shares: the device, the program, its memory,
// handles and contents, and the comparison with the recording.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "analyzer/acl/acl_program.h"
#include "replayer/acl_level/acl_verifier.h"
#include "replayer/acl_level/handles.h"
#include "replayer/acl_level/in_flight.h"
#include "replayer/acl_level/known_bytes.h"
#include "replayer/acl_level/rank_meeting.h"
#include "replayer/acl_level/rooms.h"
#include "replayer/acl_level/task.h"
#include "replayer/device/captured_graph.h"
#include "replayer/replay.h"

namespace acltape::replayer::acl_level {

// Gives workspace to operators. No block is freed while the replay lasts, because queued work and
// graphs keep its address.
class StreamWorkspaces {
 public:
  explicit StreamWorkspaces(Device& device) : device_(device) {}
  // Returns the workspace that all eager calls of a stream share. They can share it because they
  // run one after the other.
  void* Of(int64_t stream, uint64_t bytes);
  // Returns workspace that only one call of a graph uses.
  void* Own(uint64_t bytes);

 private:
  Device& device_;
  std::vector<Block> blocks_;
  struct Current {
    void* data = nullptr;
    uint64_t bytes = 0;
  };
  std::unordered_map<int64_t, Current> streams_;
};

class AclSession {
 public:
  AclSession(const storage::Reader& trace, const ReplayOptions& options, ReplayReport& report);

  const ReplayOptions& options;
  ReplayReport& report;
  analyzer::AclProgram program;
  Device device;
  Rooms rooms;
  Handles handles;
  std::unique_ptr<RankMeeting> ranks;  // the other ranks; null: this one is replayed alone
  TaskBinder binder;
  KnownBytes known{*program.trace, ranks != nullptr};
  AclVerifier verifier;
  StreamWorkspaces workspaces;
  InFlight in_flight;
  bool compare = true;  // false: only times are measured
  // Captures of the program that are open, by the id of their stream. Meanwhile the host must not
  // wait for the device.
  std::map<int64_t, Capture> captures;

  // Issues a task on a stream. With kOwn no other call gets the workspace of an operator, as a
  // graph needs it.
  enum class Workspaces : uint8_t { kShared, kOwn };
  void Issue(int64_t stream, const AclTask& task, Workspaces kind);
  // Checks the result of a wait. Returns true if its code is 0. Returns false if the wait reports
  // failed work and a wait of the recording reported the same code. Throws otherwise.
  bool CheckWait(const CallResult& result);
  // Waits for a stream, or for all, and checks the results that were copied to the host. Returns
  // false if work failed, as in the recording.
  bool WaitFor(int64_t stream);
  bool WaitForEvent(int64_t event);
  bool SynchronizeAll();
  // True if the host may wait at a point where the program did not wait.
  bool MayWait() const { return !program.waits_for_later_work && captures.empty(); }
  // Takes a result (see Take) in the order of the stream.
  void Download(int64_t stream, aclrtStream handle, const Take& take);

 private:
  // Lets `wait` wait for `what` as long as it takes. Throws Error kDevice when work of a program
  // that waits for later work has stopped (Note [Work that stops] in patience.h).
  CallResult Await(const std::string& what, const std::function<CallResult(int limit_ms)>& wait);
};

}  // namespace acltape::replayer::acl_level
