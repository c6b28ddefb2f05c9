#include "storage/payload.h"

#include <zstd.h>

#include <algorithm>
#include <memory>
#include <new>

#include "storage/hex_digits.h"

// On x86-64 the library has XXH3 for each vector width and chooses at run time; the result is the
// same for all.
#if defined(__x86_64__)
#define XXH_DISPATCH_DISABLE_REPLACE
#include <xxh_x86dispatch.h>
#define ACLTAPE_STORAGE_XXH3_128BITS XXH3_128bits_dispatch
#else
#include <xxhash.h>
#define ACLTAPE_STORAGE_XXH3_128BITS XXH3_128bits
#endif

namespace acltape::storage {
namespace {

constexpr size_t kSampleBytes = 64 << 10;
constexpr size_t kLeastSampleBytes = 1 << 10;

// The context of zstd and the room for a result. To make them, or to clear the room, costs more
// than to compress a small tensor.
struct Compressor {
  std::unique_ptr<ZSTD_CCtx, size_t (*)(ZSTD_CCtx*)> context{ZSTD_createCCtx(), ZSTD_freeCCtx};
  std::unique_ptr<char[]> room;
  size_t room_bytes = 0;

  std::optional<std::string_view> Compress(const void* data, size_t bytes,
                                           const Compression& compression) {
    const size_t most = ZSTD_compressBound(bytes);
    if (room_bytes < most) {
      room.reset(new char[most]);
      room_bytes = most;
    }
    const size_t size =
        ZSTD_compressCCtx(context.get(), room.get(), most, data, bytes, compression.level);
    if (ZSTD_isError(size) || size >= bytes - bytes / static_cast<size_t>(compression.part)) {
      return {};
    }
    return std::string_view(room.get(), size);
  }
};

// Bytes of the sample that decides; 0: none does.
size_t SampleBytes(size_t bytes, bool doubtful) {
  if (bytes > 8 * kSampleBytes) return kSampleBytes;
  if (!doubtful || bytes < 2 * kLeastSampleBytes) return 0;
  return std::max(bytes / 8, kLeastSampleBytes);
}

}  // namespace

std::string DigestText(uint64_t high, uint64_t low) {
  std::string text(32, '0');
  for (int i = 0; i < 16; ++i) {
    text[15 - i] = kHexDigits[(high >> (4 * i)) & 15];
    text[31 - i] = kHexDigits[(low >> (4 * i)) & 15];
  }
  return text;
}

std::string DigestOf(const void* data, size_t bytes) {
  const XXH128_hash_t hash = ACLTAPE_STORAGE_XXH3_128BITS(data, bytes);
  return DigestText(hash.high64, hash.low64);
}

std::optional<std::string_view> Compress(const void* data, size_t bytes,
                                         const Compression& compression, bool doubtful) {
  if (compression.level <= 0 || bytes < 64) return {};
  thread_local Compressor compressor;
  if (compressor.context == nullptr) throw std::bad_alloc();
  if (const size_t sample = SampleBytes(bytes, doubtful); sample != 0) {
    const char* middle = static_cast<const char*>(data) + (bytes - sample) / 2;
    if (!compressor.Compress(middle, sample, compression)) return {};
  }
  return compressor.Compress(data, bytes, compression);
}

bool Decompress(std::string_view packed, void* out, size_t bytes) {
  const size_t size = ZSTD_decompress(out, bytes, packed.data(), packed.size());
  return !ZSTD_isError(size) && size == bytes;
}

}  // namespace acltape::storage
