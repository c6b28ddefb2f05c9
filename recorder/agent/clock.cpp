#include "recorder/agent/clock.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace acltape::agent {

std::atomic<Clock> g_clock{Clock::kCounter};

namespace {

// Without any clock: the last times that are known.
std::atomic<uint64_t> g_last_tick{0};
std::atomic<uint64_t> g_last_ns{0};
const wire::ArenaHeader* g_calibration = nullptr;

uint64_t TickAt(uint64_t ns) {
  const wire::ArenaHeader& arena = *g_calibration;
  const auto passed = static_cast<double>(static_cast<int64_t>(ns - arena.base_ns));
  return arena.base_tick + static_cast<uint64_t>(static_cast<int64_t>(passed / arena.ns_per_tick));
}

}  // namespace

// Without any clock each question counts as 10 ns, so that who waits does not wait for ever. Else
// the system is asked, not the C library, which reads the counter.
uint64_t NsWithoutCounter() {
  if (g_clock.load() == Clock::kNone) return g_last_ns.fetch_add(10) + 10;
  timespec now{};
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

uint64_t TickWithoutCounter() {
  if (g_clock.load() == Clock::kNone) return g_last_tick.load();
  return TickAt(NsWithoutCounter());
}

void ChangeClock(Clock clock, const wire::ArenaHeader& arena) {
  if (g_clock.load() >= clock) return;
  g_calibration = &arena;
  if (clock == Clock::kNone) {
    g_last_ns.store(MonotonicNs());
    g_last_tick.store(Tick());
  }
  g_clock.store(clock);
}

}  // namespace acltape::agent
