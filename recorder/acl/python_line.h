// The line of the user's own Python code that a call comes from.
//
// The line is that of the innermost frame outside of the framework's own packages. Of code that a
// compiler of the framework generated it is the line that the generated one was made from.
//
// Note [Taking the interpreter's lock]. A framework gives the lock back before it runs an operator,
// so the line of an operator can only be read when the lock is taken again for a moment. That is
// safe where the framework's own dispatch may do the same, which is where an operator's first phase
// is called. It is not safe inside the framework's allocators: they call the interface with a mutex
// held for which a thread that has the lock may wait. There a line is read only by a thread that
// has the lock already.
#pragma once

#include <cstdint>

namespace acltape::acl_agent {

struct Thread;

enum class LockUse : uint8_t {
  kIfHeld,  // no line unless the thread has the interpreter's lock
  kTake     // the lock is waited for
};

// The id of the line (wire::PlaceRecord), announced in this thread's ring at its first use; 0 where
// there is none: no interpreter, a thread that never ran Python, no frame of the user's.
uint32_t PythonLine(Thread& thread, LockUse use);

void ForgetPythonLocks();

}  // namespace acltape::acl_agent
