// Host functions and callbacks in stream order (CB-01 to CB-10).
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>

#include "acl/acl.h"

namespace acltape::device {

// One host call that a stream has reached; `done` is set when it has returned.
struct HostCall {
  void (*function)(void*);
  void* user_data;
  std::atomic<uint32_t> done{0};
};

// Waits until the call has returned; false when the task's runner was interrupted.
bool WaitForHostCall(HostCall& call);

// The context's own service thread, which runs host functions one after the other (CB-06). Starts
// with the first one.
class HostService {
 public:
  HostService() = default;
  ~HostService();

  void Post(std::shared_ptr<HostCall> call);

 private:
  void Serve();

  std::mutex mutex_;
  std::condition_variable posted_;
  std::deque<std::shared_ptr<HostCall>> calls_;
  bool stop_ = false;
  std::thread thread_;
};

// Callbacks waiting for one subscribed thread, which runs them in aclrtProcessReport (CB-04).
class ReportQueue {
 public:
  explicit ReportQueue(uint64_t thread) : thread_(thread) {}

  uint64_t thread() const { return thread_; }
  void Post(std::shared_ptr<HostCall> call);
  // Runs one callback; false when none arrived in time (-1: wait for ever).
  bool Process(int32_t timeout_ms);

 private:
  const uint64_t thread_;
  std::mutex mutex_;
  std::condition_variable posted_;
  std::deque<std::shared_ptr<HostCall>> calls_;
};

}  // namespace acltape::device
