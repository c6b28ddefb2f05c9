// State of the agent for the whole process. Private to the agent library.
#pragma once

#include <dlfcn.h>

#include <atomic>

#include "recorder/agent/tape.h"

namespace acltape::agent {

// Returns the function of this name that the next library has.
template <typename Function>
Function NextFunction(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

constexpr uint32_t kNoNumber = ~uint32_t{0};

struct Process {
  wire::ArenaHeader* arena = nullptr;
  std::byte* slots = nullptr;  // slot pages
  std::byte* rings = nullptr;  // all rings; null: each is mapped when it is claimed
  // By slot, the rings that are mapped and not in use; null where `rings` has them all.
  std::atomic<std::byte*>* kept_rings = nullptr;
  std::atomic<uint32_t> kept_count{0};
  // The number by which the collector knows this process. 0: to be learnt; kNoNumber: it cannot be
  // learnt.
  std::atomic<uint32_t> number{0};
  std::atomic<bool> elsewhere{false};  // `number` is not what getpid() tells here; set before it
  uint32_t offered_number = 0;         // number that the collector sent with the arena, else 0
  uint32_t forks = 0;                  // between the first attached process and this one
  std::atomic<bool> sandboxed{false};  // Note [Sandboxes that kill] in sandbox.cpp
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
// Some rings stay mapped, for the next thread that claims the slot: a program can have thousands
// of threads that live for a moment.
void GiveBackRing(uint32_t slot, std::byte* ring);
bool RingIsMapped(uint32_t slot);

// The path of the program's own file, empty when it is not known.
const char* ProgramPath();

// Creates the key whose destructor closes a thread's slot at the thread's end. False when the
// process has no key left.
bool PrepareThreadEnd();
// Closes the calling thread's slot now; later records of this thread are dropped.
void CloseTape(bool process_ends);
void ForgetTapeAfterFork();

}  // namespace acltape::agent
