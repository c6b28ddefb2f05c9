// Compiled with the instructions of AVX2. The code in digest.cpp calls it on processors that have
// them.
#if defined(__x86_64__)
#include "recorder/agent/digest_at_this_width.h"

acltape::agent::Digest acltape::agent::DigestWithAvx2(const void* data, size_t bytes) {
  return DigestAtThisWidth(data, bytes);
}

#endif
