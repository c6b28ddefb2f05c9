// State of the agent for the whole process. Private to the agent library.
#pragma once

#include <atomic>

#include "recorder/agent/tape.h"

namespace acltape::agent {

constexpr uint32_t kNoNumber = ~uint32_t{0};

struct Process {
  wire::ArenaHeader* arena = nullptr;
  std::byte* slots = nullptr;  // slot pages
  // By which the collector knows this process. 0: to be learnt; kNoNumber: it cannot be learnt.
  std::atomic<uint32_t> number{0};
  std::atomic<bool> elsewhere{false};  // `number` is not what getpid() tells here; set before it
  uint32_t offered_number = 0;         // what the collector told when it gave the arena, else 0
  uint32_t forks = 0;                  // between the first attached process and this one
};
Process& ThisProcess();

// Maps the arena named in the environment; false when there is none. Called once, before threads.
bool Attach();

// The number for this process's slots (Note [Numbers of processes]), or kNoNumber. The first call
// of a process may ask the collector and wait two seconds for it; after a fork it is a first call
// again.
uint32_t ProcessNumber();

// Maps the ring of a slot; nullptr when the system refuses. Valgrind refuses the mremap that
// duplicates a mapping, so the arena is opened once more where that fails.
std::byte* MapRingOf(uint32_t slot);

// Creates the key whose destructor closes a thread's slot at the thread's end.
void PrepareThreadEnd();
// Closes the calling thread's slot now; later records of this thread are dropped.
void CloseTape();
void ForgetTapeAfterFork();

}  // namespace acltape::agent
