// A walk that issues streams, events, captures and executions as the program did.
#pragma once

#include <map>

#include "replayer/acl/acl_walk.h"

namespace acltape::replayer {

class RecordedWalk final : public AclWalk {
 public:
  using AclWalk::AclWalk;

 protected:
  void Work(const Call& call) override;
  void StoredWork(const Call& call) override;
  void UpdatedWork(const Call& call) override;
  void Control(const Call& call) override;
  void WaitForStream(const Call& call, int64_t stream) override;
  void WaitForEvent(const Call& call, int64_t event) override;
  void FeedHost(const Call& call, int64_t buffer, int64_t first, const Bytes& bytes) override;

 private:
  void IssueDirectly(const Call& call, const AclTask& task);
  void Event(const Call& call);
  void Graph(const Call& call);
  void Execute(const Call& call);
  bool IsExternal(const Call& call) const;

  // The stream on which each graph of the program runs. The graph may still read pinned memory
  // there.
  std::map<int64_t, int64_t> running_;  // model to stream
};

}  // namespace acltape::replayer
