// Memory that the agent takes inside the recorded program.
//
// Note [What the system refuses]. The program may have no memory left, or no room for one more
// mapping. It may bear that, so the recorder must: nothing ends the program, nothing is thrown into
// it, and errno is what it was. What cannot be recorded is left out, and counted in the arena, so
// that the trace says so.
#pragma once

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <cstddef>

#include "recorder/agent/tape.h"

namespace acltape::agent {

// Counts something that is missing in the trace. Nothing when the process is not recorded.
ACLTAPE_AGENT_API void LeaveOut(wire::LeftOut what, uint64_t count = 1);

// While one lives, calls of the system may fail without a trace in errno.
class KeepErrno {
 public:
  KeepErrno() = default;
  ~KeepErrno() { errno = error_; }
  KeepErrno(const KeepErrno&) = delete;
  KeepErrno& operator=(const KeepErrno&) = delete;

 private:
  const int error_ = errno;
};

// As malloc, calloc, realloc and strndup, but a failure leaves errno alone. The first four count
// what is left out for it.
inline void* Allocate(size_t bytes, wire::LeftOut what) {
  const KeepErrno keep;
  void* memory = malloc(bytes);
  if (memory == nullptr) LeaveOut(what);
  return memory;
}
inline void* AllocateZeros(size_t count, size_t each, wire::LeftOut what) {
  const KeepErrno keep;
  void* memory = calloc(count, each);
  if (memory == nullptr) LeaveOut(what);
  return memory;
}
inline void* Resize(void* before, size_t bytes, wire::LeftOut what) {
  const KeepErrno keep;
  void* memory = realloc(before, bytes);
  if (memory == nullptr) LeaveOut(what);
  return memory;
}
inline char* CopyText(const char* text, size_t most_bytes, wire::LeftOut what) {
  const KeepErrno keep;
  char* copy = strndup(text, most_bytes);
  if (copy == nullptr) LeaveOut(what);
  return copy;
}
inline char* CopyText(const char* text, wire::LeftOut what) {
  return CopyText(text, strlen(text), what);
}
// These may fail: the caller can do without the memory.
inline void* TryAllocateZeros(size_t count, size_t each) {
  const KeepErrno keep;
  return calloc(count, each);
}
inline void* TryResize(void* before, size_t bytes) {
  const KeepErrno keep;
  return realloc(before, bytes);
}

}  // namespace acltape::agent
