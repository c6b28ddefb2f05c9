// The line of the program's source that a call of the ACL interface comes from.
//
// In a process that runs Python it is a line of Python (python_line.h). Else it is the place in the
// machine code that called (native_stack.h).
#pragma once

#include <cstdint>

#include "recorder/agent/python_line.h"
#include "recorder/agent/tape.h"

namespace acltape::agent {

// The id of the place (wire::PlaceRecord), announced in the tape's ring at the first use. 0: not
// known, or not wanted. `caller` is the address to which the call returns.
ACLTAPE_AGENT_API uint32_t SourceLine(Tape& tape, LockUse use, const void* caller,
                                      FrameUse frames = FrameUse::kLine);

void ForgetSourceLocks();

}  // namespace acltape::agent
