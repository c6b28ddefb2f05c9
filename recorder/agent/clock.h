// The clock of recorded threads. It is the tick counter of wire/clock.h while the program may read
// that one.
//
// Note [Counters that are forbidden]. A program can forbid itself to read the time-stamp counter
// (prctl PR_SET_TSC, or the strict mode of seccomp): reading it, and the C library's clock_gettime,
// which reads it too, then ends the program by SIGSEGV. The program announces it by prctl, which
// the agent sees (preload.cpp). From then on the whole process asks the system for the time, or has
// no time where it may not ask: a call then has the time of the last one that had any.
#pragma once

#include <atomic>
#include <cstdint>

#include "recorder/wire/arena.h"
#include "recorder/wire/clock.h"

#define ACLTAPE_AGENT_API __attribute__((visibility("default")))

namespace acltape::agent {

enum class Clock : uint32_t { kCounter, kSystem, kNone };
ACLTAPE_AGENT_API extern std::atomic<Clock> g_clock;

// For the other clocks than the counter.
ACLTAPE_AGENT_API __attribute__((cold, noinline)) uint64_t TickWithoutCounter();
ACLTAPE_AGENT_API __attribute__((cold, noinline)) uint64_t NsWithoutCounter();

inline uint64_t Tick() {
  if (__builtin_expect(g_clock.load(std::memory_order_relaxed) != Clock::kCounter, 0)) {
    return TickWithoutCounter();
  }
  return wire::Tick();
}

inline uint64_t MonotonicNs() {
  if (__builtin_expect(g_clock.load(std::memory_order_relaxed) != Clock::kCounter, 0)) {
    return NsWithoutCounter();
  }
  return wire::MonotonicNs();
}

// Called before the program gives up the counter. A process never returns to it, because other
// threads may still be without.
void ChangeClock(Clock clock, const wire::ArenaHeader& arena);

}  // namespace acltape::agent
