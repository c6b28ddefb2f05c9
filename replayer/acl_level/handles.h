// The streams, events, notifies, graphs and task groups of a replay, found by their ids in the
// recording.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "analyzer/acl/acl_program.h"
#include "replayer/device/captured_graph.h"
#include "replayer/device/device.h"

namespace acltape::replayer::acl_level {

class Handles {
 public:
  Handles(Device& device, const analyzer::AclProgram& program)
      : device_(device), program_(program) {}
  ~Handles();  // waits for all streams
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;

  // Returns the stream or event of the replay. It is created at the first use if no recorded call
  // created it. Default streams become separate, ordinary streams (rule STR-03).
  aclrtStream Stream(int64_t id);
  Event& EventOf(int64_t id);
  // Creates or destroys an object as the recorded call did.
  void Create(const analyzer::AclCall& call);
  void Destroy(const analyzer::AclCall& call);

  // Returns the notify of the replay. It is created at the first use, too.
  aclrtNotify Notify(int64_t handle);
  // Sets the events and notifies that were set when the recording began. To be called before the
  // first call.
  void SetOlderObjects();

  std::unordered_map<int64_t, CapturedGraph> models;
  std::unordered_map<int64_t, aclrtTaskGrp> groups;  // by index in AclProgram::groups

 private:
  Device& device_;
  const analyzer::AclProgram& program_;
  std::unordered_map<int64_t, OwnedStream> streams_;
  std::unordered_map<int64_t, OwnedNotify> notifies_;  // by recorded address, as it is now
  std::unordered_map<int64_t, Event> events_;
};

// True if the call destroys a stream without waiting for its work.
inline bool IsForced(const analyzer::AclCall& call) {
  return call.function->variant == analyzer::AclVariant::kForced;
}

}  // namespace acltape::replayer::acl_level
