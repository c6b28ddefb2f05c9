// Takes the stream work of an ACL program. It issues the work to the device at once (eager), or
// makes graphs of it (captured).
#pragma once

#include <cstdint>
#include <memory>

#include "replayer/acl_level/acl_session.h"

namespace acltape::replayer::acl_level {

class WorkSink {
 public:
  virtual ~WorkSink() = default;
  virtual void Submit(int64_t stream, AclTask task) = 0;
  // Issues all work that has been submitted but not issued yet.
  virtual void Flush() = 0;
};

class EagerSink final : public WorkSink {
 public:
  explicit EagerSink(AclSession& session) : session_(session) {}
  void Submit(int64_t stream, AclTask task) override;
  void Flush() override {}

 private:
  AclSession& session_;
};

}  // namespace acltape::replayer::acl_level
