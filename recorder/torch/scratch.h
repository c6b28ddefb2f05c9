// A buffer that is filled and emptied for every call. Its first N elements lie inside, so that they
// are next to the other data that a call touches. Memory that it grew to is kept. After the last
// element kScratchSlack more bytes may be read and written.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <type_traits>

namespace acltape::torch_plugin {

constexpr size_t kScratchSlack = 64;

// Copies `bytes` bytes and up to kScratchSlack - 1 more, which is shorter than asking memcpy.
inline void CopyBlocks(std::byte* to, const void* from, size_t bytes) {
  const auto* source = static_cast<const std::byte*>(from);
  for (size_t index = 0; index < bytes; index += kScratchSlack) {
    std::memcpy(to + index, source + index, kScratchSlack);
  }
}

template <typename T, size_t N>
class Scratch {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Scratch() = default;
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  void Clear() { end_ = begin_; }
  // Keeps the first `count` elements, whatever they are.
  void Truncate(size_t count) { end_ = begin_ + count; }
  bool HasRoom(size_t count) const { return static_cast<size_t>(limit_ - end_) >= count; }
  // Room for `count` more elements at the end; Advance tells where they ended. Throws when there is
  // no memory, and holds what it held.
  T* Room(size_t count) {
    if (__builtin_expect(!HasRoom(count), 0)) Grow(count);
    return end_;
  }
  void Advance(T* end) { end_ = end; }
  void Push(const T& value) {
    *Room(1) = value;
    ++end_;
  }

  void Pop() { --end_; }

  T& operator[](size_t index) { return begin_[index]; }
  T* begin() { return begin_; }
  const T* begin() const { return begin_; }
  T* end() { return end_; }
  const T* end() const { return end_; }
  size_t size() const { return static_cast<size_t>(end_ - begin_); }

 private:
  static constexpr size_t kSlack = (kScratchSlack + sizeof(T) - 1) / sizeof(T);

  __attribute__((cold, noinline)) void Grow(size_t count) {
    const size_t used = size();
    const size_t capacity = 2 * (used + count);
    auto larger = std::make_unique<T[]>(capacity + kSlack);
    std::memcpy(larger.get(), begin_, used * sizeof(T));
    heap_ = std::move(larger);
    begin_ = heap_.get();
    end_ = begin_ + used;
    limit_ = begin_ + capacity;
  }

  T* begin_ = inside_;
  T* end_ = inside_;
  T* limit_ = inside_ + N;
  alignas(16) T inside_[N + kSlack];
  std::unique_ptr<T[]> heap_;
};

}  // namespace acltape::torch_plugin
