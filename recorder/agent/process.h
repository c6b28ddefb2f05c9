// State of the agent for the whole process. Private to the agent library.
#pragma once

#include "recorder/agent/tape.h"

namespace acltape::agent {

struct Process {
  wire::ArenaHeader* arena = nullptr;
  std::byte* slots = nullptr;  // slot pages
  uint32_t pid = 0;
  uint32_t forks = 0;  // between the first attached process and this one
};
Process& ThisProcess();

// Maps the arena named in the environment; false when there is none. Called once, before threads.
bool Attach();

// Maps the ring of a slot; nullptr when the system refuses. Valgrind refuses the mremap that
// duplicates a mapping, so the arena is opened once more where that fails.
std::byte* MapRingOf(uint32_t slot);

// Creates the key whose destructor closes a thread's slot at the thread's end.
void PrepareThreadEnd();
// Closes the calling thread's slot now; later records of this thread are dropped.
void CloseTape();
void ForgetTapeAfterFork();

}  // namespace acltape::agent
