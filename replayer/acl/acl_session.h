// What every way to replay an ACL program shares: the device, the program, its memory, handles and
// contents, and the comparison with the recording.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "analyzer/acl_program.h"
#include "replayer/acl/acl_verifier.h"
#include "replayer/acl/handles.h"
#include "replayer/acl/in_flight.h"
#include "replayer/acl/known_bytes.h"
#include "replayer/acl/rooms.h"
#include "replayer/acl/task.h"
#include "replayer/replay.h"

namespace acltape::replayer {

// Workspace of streams. Never freed while the replay lasts: queued work and graphs keep addresses.
class StreamWorkspaces {
 public:
  explicit StreamWorkspaces(Device& device) : device_(device) {}
  // Of the eager calls of a stream, which run one after the other.
  void* Of(int64_t stream, uint64_t bytes);
  // Of one call of a graph.
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
  TaskBinder binder;
  KnownBytes known;
  AclVerifier verifier;
  StreamWorkspaces workspaces;
  InFlight in_flight;
  bool compare = true;        // false: results are not looked at (timing)
  int64_t open_captures = 0;  // of the program: the host must not wait for the device

  // Throws unless `code`, the result of a wait, is 0 or tells of failed work as a wait of the
  // recording did. Returns whether it is 0.
  bool CheckWait(int code, const char* call);
  // Waits for all streams and checks what they brought.
  bool SynchronizeAll();  // false: work had failed, as in the recording
  // Whether the host may wait where the program did not.
  bool MayWait() const { return !program.waits_for_later_work && open_captures == 0; }
  // Takes a result in the order of the stream.
  void Download(int64_t stream, aclrtStream handle, const Take& take);
};

}  // namespace acltape::replayer
