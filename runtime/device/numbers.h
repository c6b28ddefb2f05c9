// A limited supply of small numbers (streams, events, notifies and models of a device).
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <queue>
#include <vector>

namespace acltape::device {

class Numbers {
 public:
  explicit Numbers(uint32_t limit) : limit_(limit) {}

  // The smallest free number (STR-22); none when all are taken.
  std::optional<uint32_t> Take() {
    std::lock_guard lock(mutex_);
    if (!released_.empty()) {
      uint32_t number = released_.top();
      released_.pop();
      return number;
    }
    if (next_ == limit_) return std::nullopt;
    return next_++;
  }

  void Release(uint32_t number) {
    std::lock_guard lock(mutex_);
    released_.push(number);
  }

  uint32_t Available() const {
    std::lock_guard lock(mutex_);
    return limit_ - next_ + static_cast<uint32_t>(released_.size());
  }

 private:
  const uint32_t limit_;
  mutable std::mutex mutex_;
  uint32_t next_ = 0;
  std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>> released_;
};

}  // namespace acltape::device
