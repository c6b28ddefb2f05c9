// Issues all device work on one stream, in the order of analyzer/acl/acl_order.h. The order
// respects all waits of the program, so no event is issued.
#pragma once

#include <cstdint>
#include <vector>

#include "analyzer/acl/acl_order.h"
#include "analyzer/acl/host_memory.h"
#include "replayer/acl_level/acl_walk.h"

namespace acltape::replayer::acl_level {

class FlatWalk final : public AclWalk {
 public:
  FlatWalk(AclSession& session, WorkSink& sink);
  void Run();

 private:
  void Issue(const analyzer::AclTurn& turn);
  void SubmitStored(const Call& call, int64_t execution);
  // Takes the contents that an execution left.
  void EndExecution(const Call& call);
  void Wait();
  void FeedHost(const Call& call, int64_t buffer, int64_t first, const Bytes& bytes) override;
  int64_t StreamOf(const Call& call) const override;

  std::vector<analyzer::AclTurn> turns_;
  analyzer::HostMemory host_memory_;
};

}  // namespace acltape::replayer::acl_level
