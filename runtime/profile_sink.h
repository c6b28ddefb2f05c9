// Gives what a profile would collect to another library of the toolkit, as it comes. Private to the
// soft device, like runtime/kernel_launch.h.
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Called by any thread, one at a time, and must call no function of the device. Names live as long
// as the process; times are nanoseconds of CLOCK_MONOTONIC_RAW.
typedef struct SoftProfileSink {
  // A call of the interface has ended.
  void (*call)(uint64_t number, const char* name, uint32_t thread, int64_t begin_ns,
               int64_t end_ns);
  // A task has run, which call `call` submitted. `kind`: "kernel", "copy" and others.
  void (*task)(uint64_t call, const char* name, const char* kind, uint32_t device, uint32_t stream,
               int64_t begin_ns, int64_t end_ns);
} SoftProfileSink;

// From now on until the next one; NULL: nobody.
__attribute__((visibility("default"))) void SoftSetProfileSink(const SoftProfileSink* sink);

#ifdef __cplusplus
}
#endif
