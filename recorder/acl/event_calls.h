// The recorder's own calls to the library's functions for events, past the wrappers.
#pragma once

#include "acl/acl.h"
#include "recorder/acl/thread.h"

namespace acltape::acl_agent {

struct EventFunctions {
  decltype(&aclrtCreateEventExWithFlag) create;
  decltype(&aclrtDestroyEvent) destroy;
  decltype(&aclrtRecordEvent) record;
  decltype(&aclrtQueryEventStatus) query;
  decltype(&aclrtEventGetTimestamp) time;
  decltype(&aclrtEventElapsedTime) elapsed;
  decltype(&aclrtStreamGetFlags) flags;        // may be null
  decltype(&aclrtGetEventAvailNum) available;  // may be null
  decltype(&aclrtPeekAtLastError) peek_error;  // may be null
  decltype(&aclrtGetLastError) take_error;     // may be null
  decltype(&aclGetRecentErrMsg) take_message;  // may be null
  bool complete;
};

// Returns the functions of the library in this process. `complete` is false when it lacks one that
// is needed.
const EventFunctions& TheEventFunctions();

// Calls of the recorder's own. A failing one sets the thread's last error and message (rules
// ERR-01, ERR-02), which the program may ask for: they are cleared again where there was none
// before.
class OwnCalls {
 public:
  explicit OwnCalls(Thread& thread) : inside_(thread), functions_(TheEventFunctions()) {
    if (functions_.peek_error != nullptr) before_ = functions_.peek_error(ACL_RT_THREAD_LEVEL);
  }
  // True when the call succeeded.
  bool Succeeded(aclError status) {
    if (status == ACL_SUCCESS) return true;
    if (before_ == ACL_SUCCESS) {
      if (functions_.take_error != nullptr) functions_.take_error(ACL_RT_THREAD_LEVEL);
      if (functions_.take_message != nullptr) functions_.take_message();
    }
    return false;
  }

 private:
  const Inside inside_;
  const EventFunctions& functions_;
  aclError before_ = ACL_SUCCESS;
};

// How many events of the device the recorder may use at a time, for values and for times each: a
// quarter of those that were free when it asked first, 4096 at most. Products have 65536, 65535 or
// 1023 (rule EVT-17), and the program needs some too.
int64_t EventsToUse(OwnCalls& own);

void ForgetEventCallLocks();

}  // namespace acltape::acl_agent
