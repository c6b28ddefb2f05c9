// Windows of recording: whether the calls of a thread are recorded now (Note [Windows] in arena.h).
#pragma once

#include <atomic>

#include "recorder/agent/tape.h"

namespace acltape::agent {

// The gate of chosen steps: odd outside of them. It counts like ArenaHeader::window, but for this
// process alone.
ACLTAPE_AGENT_API extern std::atomic<uint32_t> g_step_gate;

// A thread of the program calls this before it opens or closes a window itself, such as to wait for
// a device; null: nothing. Set once, by the plug-in of a framework.
ACLTAPE_AGENT_API extern std::atomic<void (*)()> g_before_edge;

// The thread takes notice that a window has opened or closed. In a new window it tells the
// collector so, and of the ranges that are open already.
ACLTAPE_AGENT_API bool EnterWindow(Tape& tape);

// Returns the value that `tape.window` has once the thread has taken notice. It never repeats.
inline uint32_t WindowNow(const Tape& tape) {
  return tape.arena->window.load(std::memory_order_relaxed) +
         g_step_gate.load(std::memory_order_relaxed);
}

// True when a call that begins now is recorded. For the tape's own thread.
inline bool IsOpen(Tape& tape) {
  return __builtin_expect(WindowNow(tape) == tape.window, 1) ? tape.open : EnterWindow(tape);
}

// Contents that were sent are sent again in a later epoch, because what was sent may be dropped.
inline uint32_t SentEpoch(const Tape& tape) {
  return tape.arena->limit_size != 0 ? tape.window : 0;
}

// Sets the gate of this process as the arena says. Called once, when the agent attaches.
void PrepareSteps(wire::ArenaHeader& arena);
// A range of a step's name began; returns the number of the step.
uint64_t StepBegins(Tape& tape);
void StepEnded(Tape& tape, uint64_t step);
// A step of an optimizer ended: a program that marks no steps turns to its next one.
void OptimizerEnded(Tape& tape);

}  // namespace acltape::agent
