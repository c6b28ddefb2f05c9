#include "recorder/torch/digest.h"

// On x86-64 the library has XXH3 for each vector width and chooses at run time; the result is the
// same for all.
#if defined(__x86_64__)
#define XXH_DISPATCH_DISABLE_REPLACE
#include <xxh_x86dispatch.h>
#define ACLTAPE_XXH3_128BITS XXH3_128bits_dispatch
#else
#include <xxhash.h>
#define ACLTAPE_XXH3_128BITS XXH3_128bits
#endif

namespace acltape::torch_plugin {

Digest DigestOf(const void* data, size_t bytes) {
  const XXH128_hash_t hash = ACLTAPE_XXH3_128BITS(data, bytes);
  return {hash.low64, hash.high64};
}

}  // namespace acltape::torch_plugin
