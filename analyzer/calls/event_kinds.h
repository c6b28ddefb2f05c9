// Tells events of the old kind from the others. aclrtCreateEvent and aclrtCreateEventWithFlag make
// an event that stays set from its record to its reset. The waits for any other event refer to its
// newest record. An event may be older than the recording, where a window was opened in the middle
// of a program: then its flags and its resets tell what it is.
#pragma once

#include <cstdint>
#include <set>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analyzer/calls/acl_calls.h"
#include "generated/meaning/interface_numbers.h"
#include "storage/trace.h"

namespace acltape::analyzer {

class EventKinds {
 public:
  EventKinds() = default;
  explicit EventKinds(const std::vector<storage::Handle>& events) {
    for (const storage::Handle& event : events) {
      flags_.emplace(event.id, event.flags);
      if (event.create_call != 0) continue;
      // The other functions refuse this flag (rule EVT-03).
      older_.insert(event.id);
      if (event.flags == meaning::kAclEventExternal) old_.insert(event.id);
    }
  }

  // To be called for each call that creates or resets an event and succeeded.
  void Note(const AclFunction& function, int64_t event) {
    if (function.kind == AclCallKind::kEventCreate) {
      if (function.variant != AclVariant::kNewEvent) old_.insert(event);
    } else if (function.kind == AclCallKind::kEventReset && IsOlder(event)) {
      old_.insert(event);  // a reset of the other kind is refused (rule EVT-08)
    }
  }

  // True if the event stays set until it is reset.
  bool IsOld(int64_t event) const { return old_.count(event) != 0; }
  // True if the event is of the old kind and never belongs to a capture (rules CAP-50, EVT-19).
  bool IsExternal(int64_t event) const {
    const auto flags = flags_.find(event);
    return IsOld(event) && flags != flags_.end() && flags->second == meaning::kAclEventExternal;
  }
  // True if the event is older than the recording, so that a replay has to create it.
  bool IsOlder(int64_t event) const { return older_.count(event) != 0; }
  int64_t FlagsOf(int64_t event) const {
    const auto flags = flags_.find(event);
    return flags == flags_.end() ? 0 : flags->second;
  }
  // The function that makes another event of this kind with these flags. The functions of the old
  // kind are told apart by the flags: one of them takes none.
  std::string_view MakerOf(int64_t event) const {
    if (!IsOld(event)) return "aclrtCreateEventExWithFlag";
    return FlagsOf(event) == 0 ? "aclrtCreateEvent" : "aclrtCreateEventWithFlag";
  }

 private:
  std::unordered_map<int64_t, int64_t> flags_;
  std::set<int64_t> old_;
  std::set<int64_t> older_;
};

}  // namespace acltape::analyzer
