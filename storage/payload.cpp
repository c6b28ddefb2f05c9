#include "storage/payload.h"

#include <xxhash.h>
#include <zstd.h>

#include <memory>
#include <new>

#include "storage/hex_digits.h"

namespace acltape::storage {
namespace {

constexpr size_t kSampleBytes = 64 << 10;

// Making a context costs more than compressing a small tensor with it.
size_t CompressWith(std::vector<char>& out, const void* data, size_t bytes, int level) {
  thread_local std::unique_ptr<ZSTD_CCtx, size_t (*)(ZSTD_CCtx*)> context(nullptr, ZSTD_freeCCtx);
  if (context == nullptr) context.reset(ZSTD_createCCtx());
  if (context == nullptr) throw std::bad_alloc();
  out.resize(ZSTD_compressBound(bytes));
  return ZSTD_compressCCtx(context.get(), out.data(), out.size(), data, bytes, level);
}

bool Saves(size_t packed, size_t bytes) { return packed < bytes - bytes / 20; }

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
  const XXH128_hash_t hash = XXH3_128bits(data, bytes);
  return DigestText(hash.high64, hash.low64);
}

bool Compress(const void* data, size_t bytes, int level, std::vector<char>& packed) {
  if (level <= 0 || bytes < 64) return false;
  if (bytes > 8 * kSampleBytes) {
    const char* middle = static_cast<const char*>(data) + (bytes - kSampleBytes) / 2;
    const size_t size = CompressWith(packed, middle, kSampleBytes, level);
    if (ZSTD_isError(size) || !Saves(size, kSampleBytes)) return false;
  }
  const size_t size = CompressWith(packed, data, bytes, level);
  if (ZSTD_isError(size) || !Saves(size, bytes)) return false;
  packed.resize(size);
  return true;
}

bool Decompress(std::string_view packed, void* out, size_t bytes) {
  const size_t size = ZSTD_decompress(out, bytes, packed.data(), packed.size());
  return !ZSTD_isError(size) && size == bytes;
}

}  // namespace acltape::storage
