// The time that the recorder takes from a thread, estimated from some of its hooks.
//
// A hook is what the recorder does around one call of the program: before the real call and after
// it. To read the clock twice more at each hook would be a cost of its own. So the first hooks of a
// thread are timed, and later one of some hundred at random distances, which no period of the
// program fits. A timed hook stands for all hooks since the one that was timed before it, and the
// time of the thread is counted up to its end: both sums are of the same part of the thread's life.
// They lie in the thread's slot (recorder/wire/arena.h), where they outlive the process.
#pragma once

#include <cstdint>

#include "recorder/agent/clock.h"
#include "recorder/wire/arena.h"

namespace acltape::agent {

// The sums of one thread, for that thread alone.
struct OwnTime {
  uint32_t until = 1;       // hooks up to the next one that is timed, with it
  uint32_t stands_for = 1;  // hooks for which that one stands
  uint32_t timed = 0;       // hooks that were timed
  uint32_t random = 1;
  uint64_t waited_ticks = 0;  // for room in the ring: no work of the recorder, and told by itself
  uint64_t counted_to = 0;  // tick up to which the thread's time is counted; 0: not in this window
  wire::Slot* slot = nullptr;
};

// A hook on its way. All zero: one that is not timed.
struct TimedHook {
  uint64_t begin_tick;      // 0: it is not timed
  uint64_t waited;          // waited_ticks when it began
  uint64_t waited_outside;  // ticks that were waited inside the real call
  uint32_t stands_for;
};

// The hook that begins is timed.
ACLTAPE_AGENT_API void BeginTimedHook(OwnTime& own, TimedHook& hook);
// Its end. `real_ticks`: what the real call took.
ACLTAPE_AGENT_API void EndTimedHook(OwnTime& own, TimedHook& hook, uint64_t real_ticks);

// The same at a given tick.
void BeginTimedHookAt(OwnTime& own, TimedHook& hook, uint64_t tick);
void EndTimedHookAt(OwnTime& own, TimedHook& hook, uint64_t real_ticks, uint64_t tick);

// A hook begins. `hook` is one that is not timed.
__attribute__((always_inline)) inline void BeginHook(OwnTime& own, TimedHook& hook) {
  if (__builtin_expect(--own.until == 0, 0)) BeginTimedHook(own, hook);
}
inline bool IsTimed(const TimedHook& hook) { return __builtin_expect(hook.begin_tick != 0, 0); }
// Around a real call in which the thread may wait for room too.
inline void NoteRealCall(const OwnTime& own, TimedHook& hook) {
  hook.waited_outside = 0 - own.waited_ticks;
}
inline void NoteReturn(const OwnTime& own, TimedHook& hook) {
  hook.waited_outside += own.waited_ticks;
}

// A window has opened: the thread's time while recording was closed does not count, and neither do
// the hooks since the last one that was timed.
inline void BeginCountingAnew(OwnTime& own) {
  own.until = own.stands_for = 1;
  own.counted_to = 0;
}

// Ends a hook at the end of the block.
class HookEnd {
 public:
  HookEnd(OwnTime& own, TimedHook& hook, uint64_t real_ticks)
      : own_(own), hook_(hook), real_ticks_(real_ticks) {}
  ~HookEnd() {
    if (IsTimed(hook_)) EndTimedHook(own_, hook_, real_ticks_);
  }
  HookEnd(const HookEnd&) = delete;
  HookEnd& operator=(const HookEnd&) = delete;

  void LeaveOut(uint64_t real_ticks) { real_ticks_ = real_ticks; }

 private:
  OwnTime& own_;
  TimedHook& hook_;
  uint64_t real_ticks_;
};

// A hook from here to the end of the block, one that is recorded.
class HookTimer {
 public:
  HookTimer(OwnTime& own, bool recorded) : end_(own, hook_, 0) {
    if (recorded) BeginHook(own, hook_);
  }
  void LeaveOut(uint64_t real_ticks) { end_.LeaveOut(real_ticks); }

 private:
  TimedHook hook_ = {};
  HookEnd end_;
};

}  // namespace acltape::agent
