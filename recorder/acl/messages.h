// The texts with which the library explains its failures (aclGetRecentErrMsg).
//
// Note [Texts of failures]
// The library gives a text once, to whoever asks first in the thread (rule ERR-01). The recorder
// asks after each call that failed, records the text with the call, and gives it to the program
// when that asks.
#pragma once

#include <cstdint>

#include "recorder/acl/real.h"

namespace acltape::acl_agent {

struct Thread;

// Records the text of a call of `function` that failed in this thread. Nothing is recorded if the
// library has none.
void RecordMessage(Thread& thread, uint64_t call_id, const char* function);

// The thread ends: the program asks for no more texts.
void ForgetMessages();

// The wrapped function that gives texts.
extern const WrappedFunction kMessageFunctions[];

}  // namespace acltape::acl_agent
