#include "recorder/agent/own_time.h"

#include <algorithm>

namespace acltape::agent {
namespace {

constexpr uint32_t kFirstHooks = 64;  // all of them are timed

// A random number from 1 to 256, by the generator of Numerical Recipes.
uint32_t NextDistance(OwnTime& own) {
  own.random = own.random * 1664525 + 1013904223;
  return 1 + (own.random >> 24);
}

// The thread alone writes its slot.
void AddTo(std::atomic<uint64_t>& sum, uint64_t more) {
  sum.store(sum.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
}

// The ticks of so many hooks, of which one took `one`. A hook in which the thread lost its
// processor must not stand for others: what is longer than some 0.1 ms stands for others only as
// far as they can have taken it in the time that has passed since the last timed one.
uint64_t SumFor(uint64_t hooks, uint64_t one, uint64_t passed) {
  constexpr uint64_t kLong = uint64_t{1} << 18;
  if (one <= kLong) return one * hooks;
  return std::max(kLong * hooks + (one - kLong), std::min(one * hooks, passed));
}

void ChooseNext(OwnTime& own, TimedHook& hook) {
  hook = {0, own.waited_ticks, 0, own.stands_for};
  own.until = own.stands_for = ++own.timed < kFirstHooks ? 1 : NextDistance(own);
}

void Start(OwnTime& own, TimedHook& hook, uint64_t tick) {
  hook.begin_tick = tick;
  if (own.counted_to == 0) own.counted_to = tick;
}

}  // namespace

void BeginTimedHookAt(OwnTime& own, TimedHook& hook, uint64_t tick) {
  ChooseNext(own, hook);
  Start(own, hook, tick);
}

void EndTimedHookAt(OwnTime& own, TimedHook& hook, uint64_t real_ticks, uint64_t tick) {
  const uint64_t waited = own.waited_ticks - hook.waited - hook.waited_outside;
  // The counters of two processors may differ by a little.
  const auto spent = static_cast<int64_t>(tick - hook.begin_tick - real_ticks - waited);
  hook.begin_tick = 0;
  if (spent > 0) {
    const uint64_t passed = tick > own.counted_to ? tick - own.counted_to : 0;
    AddTo(own.slot->own_ticks, SumFor(hook.stands_for, static_cast<uint64_t>(spent), passed));
  }
  AddTo(own.slot->timed_hooks, 1);
  if (own.counted_to != 0 && tick > own.counted_to) {
    AddTo(own.slot->counted_ticks, tick - own.counted_to);
  }
  own.counted_to = tick;
}

__attribute__((cold, noinline)) void BeginTimedHook(OwnTime& own, TimedHook& hook) {
  ChooseNext(own, hook);
  Start(own, hook, Tick());
}

__attribute__((cold, noinline)) void EndTimedHook(OwnTime& own, TimedHook& hook,
                                                  uint64_t real_ticks) {
  EndTimedHookAt(own, hook, real_ticks, Tick());
}

}  // namespace acltape::agent
