// The streams, events, notifies, graphs and task groups of a replay, found by their ids in the
// recording.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "analyzer/acl_program.h"
#include "replayer/captured_graph.h"
#include "replayer/device.h"

namespace acltape::replayer {

class Handles {
 public:
  Handles(Device& device, const analyzer::AclProgram& program)
      : device_(device), program_(program) {}
  ~Handles();
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;

  // Returns the stream or event of the replay. It is created at the first use if no recorded call
  // created it. Default streams become separate, ordinary streams (rule STR-03).
  aclrtStream Stream(int64_t id);
  aclrtEvent Event(int64_t id);
  // Creates or destroys an object as the recorded call did.
  void Create(const analyzer::AclCall& call);
  void Destroy(const analyzer::AclCall& call);

  std::unordered_map<int64_t, CapturedGraph> models;
  std::unordered_map<int64_t, aclrtTaskGrp> groups;  // by index in AclProgram::groups
  const std::unordered_map<int64_t, aclrtStream>& streams() const { return streams_; }
  aclrtNotify Notify(int64_t handle) const;

 private:
  Device& device_;
  const analyzer::AclProgram& program_;
  std::unordered_map<int64_t, aclrtStream> streams_;
  std::unordered_map<int64_t, aclrtEvent> events_;
  std::unordered_map<int64_t, aclrtNotify> notifies_;  // by recorded address, as it is now
};

// True if the call destroys a stream without waiting for its work.
inline bool IsForced(const analyzer::AclCall& call) {
  return call.function->variant == analyzer::AclVariant::kForced;
}

// Returns `function`. Throws Error kDevice if it is null, that is, if the library lacks it.
template <typename Function>
Function Needed(Function function, const analyzer::AclProgram& program,
                const analyzer::AclCall& call) {
  if (function == nullptr) {
    throw Error(ErrorKind::kDevice, program.Describe(call) +
                                        " cannot be issued: the device library lacks the "
                                        "function; use a newer one");
  }
  return function;
}

}  // namespace acltape::replayer
