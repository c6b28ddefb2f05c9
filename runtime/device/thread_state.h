// State of the interface for each thread. It is plain memory without destructors, because calls may
// still come when threads end and processes exit (INIT-09).
#pragma once

#include <cstdint>

#include "acl/acl.h"
#include "runtime/device/handle.h"

namespace acltape::device {

struct ThreadState {
  uint64_t number;         // unique in the process, from 1; 0: not assigned yet
  uint32_t system_id;      // the system's number of the thread; 0: not asked for yet
  HandleRef context;       // current context, primary or explicit (CTX-01); may be stale
  uint32_t exchange_mode;  // X of rule CAP-32: starts as GLOBAL, which is 0
  uint32_t last_task_id;   // the newest task that this thread submitted
  HandleRef last_model;    // the model that stored it; none if a stream runs it
  uint32_t last_node;      // its place in that model
  aclError last_error;     // ERR-02
  bool has_message;
  char message[1024];   // newest message
  char returned[1024];  // the last text from aclGetRecentErrMsg
  // The stream whose resource limits this thread uses (DEV-16).
  HandleRef resource_stream;
};

extern thread_local constinit ThreadState thread_state;

// thread_state.number, assigned at first use.
uint64_t ThreadNumber();

// thread_state.system_id, asked for at first use.
uint32_t SystemThreadId();

}  // namespace acltape::device
