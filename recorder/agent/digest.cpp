#include "recorder/agent/digest.h"

#include "recorder/agent/digest_at_this_width.h"

namespace acltape::agent {

namespace {

using Function = Digest (*)(const void*, size_t);

Function Chosen() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f")) return DigestWithAvx512;
  if (__builtin_cpu_supports("avx2")) return DigestWithAvx2;
#endif
  return DigestAtThisWidth;
}

}  // namespace

Digest DigestOf(const void* data, size_t bytes) {
  // Two threads that come first at the same time choose the same.
  static Function chosen = nullptr;
  Function function = __atomic_load_n(&chosen, __ATOMIC_RELAXED);
  if (function == nullptr) {
    function = Chosen();
    __atomic_store_n(&chosen, function, __ATOMIC_RELAXED);
  }
  return function(data, bytes);
}

}  // namespace acltape::agent
