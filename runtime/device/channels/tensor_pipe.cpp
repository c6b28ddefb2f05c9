#include "runtime/device/channels/tensor_pipe.h"

#include "runtime/device/channels/timed_wait.h"

namespace acltape::device {

bool TensorPipe::Send(TensorBatch& batch, int32_t timeout_ms) {
  std::unique_lock lock(mutex_);
  WaitUntil(changed_, lock, timeout_ms, [this] { return stopped_ || batches_.size() < capacity_; });
  if (batches_.size() >= capacity_) return false;
  batches_.push_back(std::move(batch));
  changed_.notify_all();
  return true;
}

std::optional<TensorBatch> TensorPipe::Receive(int32_t timeout_ms) {
  std::unique_lock lock(mutex_);
  WaitUntil(changed_, lock, timeout_ms, [this] { return stopped_ || !batches_.empty(); });
  if (batches_.empty()) return std::nullopt;
  TensorBatch batch = std::move(batches_.front());
  batches_.pop_front();
  changed_.notify_all();
  return batch;
}

size_t TensorPipe::size() const {
  const std::lock_guard lock(mutex_);
  return batches_.size();
}

void TensorPipe::Clear() {
  const std::lock_guard lock(mutex_);
  batches_.clear();
  changed_.notify_all();
}

void TensorPipe::Stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

bool TensorPipe::stopped() const {
  const std::lock_guard lock(mutex_);
  return stopped_;
}

}  // namespace acltape::device
