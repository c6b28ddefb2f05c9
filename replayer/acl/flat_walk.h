// Issues all device work on one stream.
//
// The host keeps a queue for each stream of the program. Work leaves the head of its queue as soon
// as the work that it waits for has left. In most programs this happens at once, in recorded order.
// If a graph waits for an event that the program records only later (rule UPD-06), its work leaves
// when that record has come. The order of leaving respects all events, so events are not issued at
// all.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include "replayer/acl/acl_walk.h"

namespace acltape::replayer {

class FlatWalk final : public AclWalk {
 public:
  using AclWalk::AclWalk;

 protected:
  void Work(const Call& call) override;
  void StoredWork(const Call&) override {}  // kept in AclModel::calls
  void UpdatedWork(const Call& call) override;
  void Control(const Call& call) override;
  void WaitForStream(const Call& call, int64_t stream) override;
  void WaitForEvent(const Call& call, int64_t event) override;
  void FeedHost(const Call& call, int64_t buffer, int64_t first, const Bytes& bytes) override;
  void Finish() override;

 private:
  struct Entry {
    std::function<bool()> ready;  // empty: always ready
    std::function<void()> leave;
  };
  using HostContents = std::map<int64_t, Bytes>;  // by buffer

  void Push(int64_t stream, Entry entry);
  void Pump();
  void Event(const Call& call, bool stored, int64_t stream);
  void Execute(const Call& call);
  void SubmitStored(const Call& call, const HostContents& contents);
  void Submit(AclTask task);
  void Observe(const AclTask& task);
  bool ValueReached(const Call& call) const;
  [[noreturn]] void Stuck(const Call& call, const std::string& what) const;

  std::map<int64_t, std::deque<Entry>> queues_;
  // Each record of an event gets a ticket. A wait belongs to the newest ticket of its event (rule
  // EVT-05).
  std::map<int64_t, int64_t> newest_;  // by event
  std::set<int64_t> left_;             // tickets whose record has left its queue
  int64_t tickets_ = 0;
  std::set<int64_t> set_events_;         // external events, live
  std::map<int64_t, int64_t> notifies_;  // by recorded address
  // Values in memory that value waits look at, as value writes and fills left them.
  std::map<const uint8_t*, uint64_t> values_;
  std::map<int64_t, std::vector<int64_t>> updates_;      // open, by stream
  std::map<int64_t, std::vector<int64_t>> group_calls_;  // by group, once updated
  HostContents host_contents_;
};

}  // namespace acltape::replayer
