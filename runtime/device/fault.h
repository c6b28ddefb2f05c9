// Faults on purpose: calls that fail, tasks that fail, wrong bits, delays.
//
// A fault is one line of words, TARGET [WHICH] EFFECT:
//
//   aclrtMalloc #3 return=207001          the third call of aclrtMalloc fails
//   aclnnAdd every=10 fail=507015         every tenth run of the operator fails
//   aclnnMm p=0.01 seed=7 flip=5          one run in a hundred has bit 5 of its output wrong
//   aclnnRelu delay=2ms                   runs of the operator begin 2 ms late
//   stream=4 jitter=500us seed=1          tasks of that stream begin up to 500 us late
//
// Several are separated by ';' or line ends. They come from ACLTAPE_SOFT_FAULTS (a text, or @FILE)
// and from the `fault` lines of the profile file. What cannot be understood is reported on stderr
// in one sentence and ignored. Occurrences are counted per fault: calls when they are made, tasks
// when they run, so a captured task counts once per replay.
#pragma once

#include <atomic>
#include <cstdint>

#include "runtime/device/task.h"
#include "runtime/kernel_launch.h"

namespace acltape::device {

enum class FaultState : uint8_t { kUnread, kNone, kSome };
extern constinit std::atomic<FaultState> fault_state;
// Reads the faults; true when there are any.
bool ReadFaults();

// One load and one predictable branch when there are none.
inline bool FaultsGiven() {
  FaultState state = fault_state.load(std::memory_order_acquire);
  if (state == FaultState::kNone) [[likely]]
    return false;
  return state == FaultState::kSome || ReadFaults();
}

// 0, or the code that this call of the interface function is to return.
aclError InjectedFault(const char* call);

// The task, or one in its place that fails or waits as the faults for its name say.
Task WithFaults(Task&& task);

// Waits as long as the faults for the stream say.
void DelayTask(uint32_t stream, uint64_t position);

// FlipsBits tells whether a fault may flip bits in outputs of this operator. FlipBits does it,
// after a run.
bool FlipsBits(const char* name);
void FlipBits(const char* name, const SoftOutput* outputs, size_t count);

}  // namespace acltape::device
