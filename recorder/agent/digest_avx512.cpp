// Compiled with the instructions of AVX-512. The code in digest.cpp calls it on processors that
// have them.
#if defined(__x86_64__)
#include "recorder/agent/digest.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace acltape::agent {

Digest DigestWithAvx512(const void* data, size_t bytes) {
  const XXH128_hash_t hash = XXH3_128bits(data, bytes);
  return {hash.low64, hash.high64};
}

}  // namespace acltape::agent

#endif
