// The inside of a channel of tensors: batches in the order in which they were sent (TDT-03 to
// TDT-07).
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>

#include "runtime/device/channels/tensor_data.h"

namespace acltape::device {

class TensorPipe {
 public:
  explicit TensorPipe(size_t capacity) : capacity_(capacity) {}

  // False when there was no room in time. Takes the batch only on success.
  bool Send(TensorBatch& batch, int32_t timeout_ms);
  // None when nothing came in time.
  std::optional<TensorBatch> Receive(int32_t timeout_ms);

  size_t size() const;
  void Clear();
  // Wakes who waits. From then on nobody waits any more.
  void Stop();
  bool stopped() const;

 private:
  const size_t capacity_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<TensorBatch> batches_;
  bool stopped_ = false;
};

}  // namespace acltape::device
