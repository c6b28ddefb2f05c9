// The streams, events, notifies, graphs and task groups of a replay, by the ids of the recording.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "analyzer/acl_program.h"
#include "replayer/device.h"

namespace acltape::replayer {

class Handles {
 public:
  Handles(Device& device, const analyzer::AclProgram& program)
      : device_(device), program_(program) {}
  ~Handles();
  Handles(const Handles&) = delete;
  Handles& operator=(const Handles&) = delete;

  // Created at the first use when no recorded call did. Default streams become streams of their
  // own: they are ordinary streams (rule STR-03).
  aclrtStream Stream(int64_t id);
  aclrtEvent Event(int64_t id);
  // Makes the object as the recorded call did.
  void Create(const analyzer::AclCall& call);
  void Destroy(const analyzer::AclCall& call);

  std::unordered_map<int64_t, aclmdlRI> models;
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

// Destroys a stream without waiting for its work.
inline bool IsForced(const analyzer::AclCall& call) {
  return call.op->name == "aclrtDestroyStreamForce";
}

// Throws Error kDevice when the library lacks the function that `call` needs.
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
