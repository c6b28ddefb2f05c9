// The 128-bit XXH3 of a tensor's bytes, by which equal contents are known.
#pragma once

#include <cstddef>
#include <cstdint>

namespace acltape::torch_plugin {

struct Digest {
  uint64_t low, high;
  bool operator==(const Digest& other) const { return low == other.low && high == other.high; }
};
struct DigestHash {
  size_t operator()(const Digest& digest) const { return digest.low; }
};

Digest DigestOf(const void* data, size_t bytes);

}  // namespace acltape::torch_plugin
