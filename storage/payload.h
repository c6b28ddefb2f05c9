// Content of tensors: named by the XXH3-128 digest of the packed bytes, stored once, compressed
// where that saves room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace acltape::storage {

// XXH3-128 with seed 0 as 32 lower-case hexadecimal digits, high half first.
std::string DigestOf(const void* data, size_t bytes);
std::string DigestText(uint64_t high, uint64_t low);

// A payload is cut into pieces of this size, because one value of SQLite holds less than 1 GB.
constexpr size_t kPayloadPieceBytes = size_t{256} << 20;

struct Compression {
  int level = 1;  // 1 is the quickest of zstd; 0: nothing is compressed
  int part = 20;  // nothing is compressed that does not become smaller by this part: a twentieth
};

// Compresses with zstd; nothing where that does not pay. What is returned lives until the next call
// of the thread. A sample of a large content decides first, so that random-looking data costs
// almost nothing. `doubtful`: a sample of a smaller content does too.
std::optional<std::string_view> Compress(const void* data, size_t bytes,
                                         const Compression& compression, bool doubtful = false);

// Expands `packed` to exactly `bytes` bytes at `out`; false when it does not fit or is damaged.
bool Decompress(std::string_view packed, void* out, size_t bytes);

}  // namespace acltape::storage
