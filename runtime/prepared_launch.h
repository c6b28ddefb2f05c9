// How the soft device's operator library launches what a first phase has prepared. Private to the
// soft device, as runtime/kernel_launch.h.
#pragma once

#include "runtime/kernel_launch.h"

#ifdef __cplusplus
extern "C" {
#endif

// As SoftLaunchKernel, with the system's number of the thread that called the first phase: a
// framework may launch in another thread, and a failure should name the one that asked.
__attribute__((visibility("default"))) aclError SoftLaunchPreparedKernel(
    aclrtStream stream, const char* name, uint32_t prepared_by, SoftKernelRun run,
    SoftKernelDrop drop, void* bound);

#ifdef __cplusplus
}
#endif
