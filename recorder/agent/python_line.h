// The line of the user's own Python code that a call comes from.
//
// The line is that of the innermost frame outside of the framework's own packages and of Python's
// library. Of code that a compiler of the framework generated it is the line that the generated one
// was made from. A line costs some thirty nanoseconds: frames are read in place (python_frames.h),
// and each thread remembers the lines that it met.
//
// Note [Taking the interpreter's lock]. A framework gives the lock back before it runs an operator.
// So the lock is taken again for a moment when the stack holds a function that was not met before.
// That is safe where the framework's own dispatch may do the same: at a leaf of PyTorch, and where
// an operator's first phase is called. It is not safe inside the framework's allocators: they call
// the interface with a mutex held for which a thread that has the lock may wait. There a new
// function is passed over unless the thread has the lock already.
#pragma once

#include <cstdint>

#include "recorder/agent/tape.h"

namespace acltape::agent {

enum class LockUse : uint8_t {
  kIfHeld,  // the interpreter's lock is used if the thread has it
  kTake     // the lock is waited for
};

enum class FrameUse : uint8_t {
  kLine,       // the line of the user's code
  kToTheUsers  // with the framework's functions between it and the call
};

// The id of the line (wire::PlaceRecord) that the calling thread executes, announced in its ring at
// the first use. With whole stacks it is the id of the line and its callers. 0: no line is wanted,
// no interpreter, a thread that never ran Python, no frame of the user's.
//
// A call without the lock (kIfHeld) whose stack holds a function that was not met before has the
// line of the nearest function of the user's that was.
ACLTAPE_AGENT_API uint32_t PythonLine(Tape& tape, LockUse use, FrameUse frames = FrameUse::kLine);

// The same for the leaf `call_id` that begins, which is the tape's open call. What the leaf calls
// in turn has the same line until Python runs inside of it, and is not read again.
ACLTAPE_AGENT_API uint32_t LeafLine(Tape& tape, uint64_t call_id);

// Frees what PythonLine keeps for a thread.
void FreeLines(LineCache* lines);

void ForgetPythonLocks();

}  // namespace acltape::agent
