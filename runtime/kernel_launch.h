// The soft device's operator library (libopapi.so) hands bound kernels to the streams of
// libascendcl.so through these functions. They are private to the soft device: no vendor library
// has them, and nothing outside runtime/ uses them.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "acl/acl.h"

#ifdef __cplusplus
extern "C" {
#endif

// Runs the kernel on the stream's worker (or once per replay when captured); returns 0 or the
// task's error code. Must not throw and must not call ACL functions.
typedef aclError (*SoftKernelRun)(void* bound);
// Frees `bound`. Called exactly once: after the only run, at the model's destruction when captured,
// or at once when the launch fails.
typedef void (*SoftKernelDrop)(void* bound);

// Submits a kernel to `stream` (NULL: the default stream), or stores it in the capture that the
// stream takes part in. Takes ownership of `bound` in every case. `name` (copied) is the
// operator's.
__attribute__((visibility("default"))) aclError SoftLaunchKernel(aclrtStream stream,
                                                                 const char* name,
                                                                 SoftKernelRun run,
                                                                 SoftKernelDrop drop, void* bound);

// Like SoftLaunchKernel, for a kernel whose arguments are plain bytes. The device keeps a private
// copy of them, and `run` gets a pointer to the copy, aligned to 64 bytes. Captured models can show
// and replace the bytes.
__attribute__((visibility("default"))) aclError SoftLaunchKernelWithArgs(
    aclrtStream stream, const char* name, SoftKernelRun run, const void* args, size_t bytes);

// Memory that a kernel writes.
typedef struct SoftOutput {
  void* first;
  uint64_t bytes;
} SoftOutput;

// The code that this call of an operator's phase returns at once, by a fault on purpose or because
// aclFinalize came before, with its message and last error set; 0 for none.
__attribute__((visibility("default"))) aclError SoftInjectedFault(const char* call);

// True when a fault on purpose may flip bits in outputs of this operator (runtime/device/fault.h).
// Its kernel then calls SoftFlipBits at the end of every run.
__attribute__((visibility("default"))) bool SoftFlipsBits(const char* name);
__attribute__((visibility("default"))) void SoftFlipBits(const char* name,
                                                         const SoftOutput* outputs, size_t count);

// Says what becomes of results of kernels on a stream that no number of their type can hold.
typedef struct SoftSaturation {
  bool saturates;        // inf becomes the greatest number, NaN becomes 0; else they stay
  uint32_t* overflowed;  // is set to 1 then, by an atomic store; NULL where nobody asks
} SoftSaturation;

// True once the program has chosen for some device that results saturate (aclrtSetDeviceSatMode).
__attribute__((visibility("default"))) bool SoftSaturates(void);
__attribute__((visibility("default"))) SoftSaturation SoftSaturationOf(aclrtStream stream);

// The version of the generator that random operators draw from (setting `generator`): 1 or 2.
__attribute__((visibility("default"))) int SoftRandomGenerator(void);

// The settings that decide which values a program computes, as a JSON object: {"generator":2}, and
// the members "jitter", "order" and "poison" where they are not 0, and "compute":"nothing" where
// kernels are not run. A recorder writes it down. The text lives as long as the process.
__attribute__((visibility("default"))) const char* SoftDescribe(void);

// True where kernels look for memory that nothing wrote among what they read: with `poison`, and
// with a file for what is found (runtime/device/findings.h).
__attribute__((visibility("default"))) bool SoftWatchesReads(void);
// Reports that `op` made a result of unwritten memory. `what` is a sentence about it.
__attribute__((visibility("default"))) void SoftReportUnwrittenRead(const char* op,
                                                                    const char* what);

// Sets the text that aclGetRecentErrMsg returns next in this thread.
__attribute__((visibility("default"))) void SoftSetErrorMessage(const char* text);

// The text that aclGetRecentErrMsg would return next in this thread, which it still does; "" where
// there is none. Valid until the thread's next message.
__attribute__((visibility("default"))) const char* SoftErrorMessage(void);

// Stores `code` as the thread's last failing code (ERR-02) and returns it.
__attribute__((visibility("default"))) aclError SoftSetLastError(aclError code);

#ifdef __cplusplus
}
#endif
