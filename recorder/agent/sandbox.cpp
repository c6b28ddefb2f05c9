// Note [Sandboxes that kill]. A process can have a filter of system calls that refuses the others,
// or ends the process for them (seccomp). What the agent asks of the system in between would end
// the program. A filter is set by prctl, or after a prctl that gives up new rights, so the agent
// learns of it: before, it claims the thread's ring and learns what it needs; from then on it makes
// no call of the system where a thread claims its ring or waits for room. This holds when all rings
// are mapped already (attach.cpp), that is for few and small ones: mapping another needs mremap.
#include "recorder/agent/sandbox.h"

#include <pthread.h>

#include "recorder/agent/memory.h"
#include "recorder/agent/process.h"

namespace acltape::agent {

void PrepareForSandbox() {
  Process& process = ThisProcess();
  if (process.arena == nullptr || process.sandboxed.load()) return;
  const KeepErrno keep;
  CurrentTape();
  ProcessNumber();
  process.sandboxed.store(true);
}

// A mutex that remembers its owner knows it by this number.
uint32_t ThreadNumberHere() {
  pthread_mutex_t mutex = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
  pthread_mutex_lock(&mutex);
  const auto number = static_cast<uint32_t>(mutex.__data.__owner);
  pthread_mutex_unlock(&mutex);
  return number;
}

}  // namespace acltape::agent
