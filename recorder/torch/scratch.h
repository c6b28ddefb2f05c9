// A buffer that is filled and emptied for every call: its first N elements lie inside, so that it
// costs no pointer, and what it grew to it keeps.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <type_traits>

namespace acltape::torch_plugin {

template <typename T, size_t N>
class Scratch {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Scratch() = default;
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  void Clear() { end_ = begin_; }
  // Room for `count` more elements at the end; Advance tells where they ended.
  T* Room(size_t count) {
    if (__builtin_expect(static_cast<size_t>(limit_ - end_) < count, 0)) Grow(count);
    return end_;
  }
  void Advance(T* end) { end_ = end; }
  void Push(const T& value) {
    *Room(1) = value;
    ++end_;
  }

  const T* begin() const { return begin_; }
  const T* end() const { return end_; }
  size_t size() const { return static_cast<size_t>(end_ - begin_); }

 private:
  __attribute__((cold, noinline)) void Grow(size_t count) {
    const size_t used = size();
    const size_t capacity = 2 * (used + count);
    auto larger = std::make_unique<T[]>(capacity);
    std::memcpy(larger.get(), begin_, used * sizeof(T));
    heap_ = std::move(larger);
    begin_ = heap_.get();
    end_ = begin_ + used;
    limit_ = begin_ + capacity;
  }

  T* begin_ = inside_;
  T* end_ = inside_;
  T* limit_ = inside_ + N;
  T inside_[N];
  std::unique_ptr<T[]> heap_;
};

}  // namespace acltape::torch_plugin
