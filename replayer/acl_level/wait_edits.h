// Waits that the edits of lint findings add to an ACL program (analyzer/lint/finding.h): an event
// is recorded after one call and waited for before another. A replay with them shows whether the
// edit mends the program, before anyone changes it.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "replayer/acl_level/work_sink.h"

namespace acltape::replayer::acl_level {

// One place where an edit adds a call. A call of the program is named by its id.
struct AddedCall {
  int64_t wait = 0;     // number of the added event
  bool record = false;  // else the wait for it
  int64_t stream = 0;
};

struct AddedWaits {
  std::map<int64_t, std::vector<AddedCall>> before, after;  // by call
  int64_t count = 0;
};

// The waits of the findings that `wanted` names: "all", a rule ("LINT-09"), or a rule at a call
// ("LINT-09@812"). Every occurrence of such a finding gets its wait, in each step. Throws Error
// kUsage, one sentence, when nothing matches, or when an edit is of another kind.
AddedWaits FindAddedWaits(const storage::Reader& trace, const std::vector<std::string>& wanted);

// Makes the added calls while a replay issues the program.
class WaitEdits {
 public:
  WaitEdits(AclSession& session, AddedWaits waits) : session_(session), waits_(std::move(waits)) {}
  void Before(int64_t call_id, WorkSink& sink) { Make(waits_.before, call_id, sink); }
  void After(int64_t call_id, WorkSink& sink) { Make(waits_.after, call_id, sink); }

 private:
  void Make(const std::map<int64_t, std::vector<AddedCall>>& calls, int64_t call_id,
            WorkSink& sink);

  AclSession& session_;
  AddedWaits waits_;
  std::map<int64_t, Event> events_;  // by number
};

}  // namespace acltape::replayer::acl_level
