// The 128-bit XXH3 of bytes, with seed 0, by which equal contents are known. The agent brings no
// library along, so it holds the function itself, for each vector width of the processor; the
// result is the same for all.
#pragma once

#include <cstddef>
#include <cstdint>

#include "recorder/agent/tape.h"

namespace acltape::agent {

struct Digest {
  uint64_t low = 0;
  uint64_t high = 0;
};

ACLTAPE_AGENT_API Digest DigestOf(const void* data, size_t bytes);

// The same for a processor that has these instructions. Defined on x86-64 alone.
Digest DigestWithAvx2(const void* data, size_t bytes);
Digest DigestWithAvx512(const void* data, size_t bytes);

}  // namespace acltape::agent
