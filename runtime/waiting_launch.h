// Launches tasks that wait for other threads or processes. Private to the soft device, like
// runtime/kernel_launch.h.
#pragma once

#include "runtime/kernel_launch.h"

#ifdef __cplusplus
extern "C" {
#endif

// Goes on with the task as far as it can without waiting for long; true when `run` would return at
// once. Called by the worker of the stream, and only in a graph that has several streams, so that
// the others get on meanwhile.
typedef bool (*SoftTaskReady)(void* bound);

// Like SoftLaunchKernel, for a task that may wait.
__attribute__((visibility("default"))) aclError SoftLaunchWaiting(aclrtStream stream,
                                                                  const char* name,
                                                                  SoftKernelRun run,
                                                                  SoftTaskReady ready,
                                                                  SoftKernelDrop drop, void* bound);

// The same for a kernel of the operator library: with the system's number of the thread that called
// the first phase, as SoftLaunchPreparedKernel (runtime/prepared_launch.h).
__attribute__((visibility("default"))) aclError SoftLaunchWaitingKernel(
    aclrtStream stream, const char* name, uint32_t prepared_by, SoftKernelRun run,
    SoftTaskReady ready, SoftKernelDrop drop, void* bound);

// For `run`: true when its stream or its graph was aborted, or the process ends. It then returns.
__attribute__((visibility("default"))) bool SoftTaskInterrupted(void);

// For `run`, around a wait: while a task sleeps, its stream counts as one on which nothing runs.
__attribute__((visibility("default"))) void SoftTaskSleeps(bool sleeps);

// Work may go on because of other processes from now on, so that nothing is told to stand still.
__attribute__((visibility("default"))) void SoftWorkIsShared(void);

#ifdef __cplusplus
}
#endif
