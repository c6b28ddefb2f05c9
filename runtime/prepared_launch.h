// Launches a kernel that a first phase has prepared. Private to the soft device, like
// runtime/kernel_launch.h.
#pragma once

#include "runtime/kernel_launch.h"

#ifdef __cplusplus
extern "C" {
#endif

// Like SoftLaunchKernel, with the system's number of the thread that called the first phase. A
// framework may launch in another thread, and a failure should name the thread that asked.
__attribute__((visibility("default"))) aclError SoftLaunchPreparedKernel(
    aclrtStream stream, const char* name, uint32_t prepared_by, SoftKernelRun run,
    SoftKernelDrop drop, void* bound);

#ifdef __cplusplus
}
#endif
