// The bytes of a call that is being encoded.
#pragma once

#include <cstddef>
#include <cstring>

namespace acltape::acl_agent {

// Grows by malloc; what does not fit any more is left out, and `lost` says so. Then the bytes mean
// nothing.
struct Bytes {
  std::byte* data = nullptr;
  size_t size = 0;
  size_t capacity = 0;
  bool lost = false;
  bool too_long = false;  // it was lost because it is too long; else there was no memory

  void Clear() {
    size = 0;
    lost = too_long = false;
  }
  bool Reserve(size_t more);
  // Room for `more` bytes at the end, which the caller adds to `size`; null when they do not fit.
  std::byte* Room(size_t more) {
    return size + more > capacity && !Reserve(more) ? nullptr : data + size;
  }
  void Append(const void* from, size_t bytes) {
    if (bytes == 0 || (size + bytes > capacity && !Reserve(bytes))) return;
    std::memcpy(data + size, from, bytes);
    size += bytes;
  }
  template <typename T>
  void Add(const T& value) {
    Append(&value, sizeof(value));
  }
};

}  // namespace acltape::acl_agent
