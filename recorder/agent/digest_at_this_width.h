// The digest with the vector instructions that the including file is compiled with. The function is
// the file's own, so that those of several widths do not become one.
#pragma once

#include "recorder/agent/digest.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace acltape::agent {

static inline Digest DigestAtThisWidth(const void* data, size_t bytes) {
  const XXH128_hash_t hash = XXH3_128bits(data, bytes);
  return {hash.low64, hash.high64};
}

}  // namespace acltape::agent
