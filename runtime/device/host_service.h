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

class Stream;

// One host call that a stream has reached; `done` is set when its function has ended.
struct HostCall {
  enum Done : uint32_t { kRuns, kReturned, kEndedItsThread };

  void (*function)(void*);
  void* user_data;
  const Stream* stream = nullptr;  // waits for the end; null: none does
  std::atomic<uint32_t> done{kRuns};
};

// Waits until the call has ended; false when the task's runner was interrupted.
bool WaitForHostCall(HostCall& call);

// The stream that waits for the function of the program which this thread runs; null: none does.
const Stream* StreamOfHostFunction();

// The context's own service thread, which runs host functions one after the other (CB-06). Starts
// with the first one.
class HostService {
 public:
  HostService() = default;
  ~HostService();

  void Post(std::shared_ptr<HostCall> call);

 private:
  void Serve();
  // Another thread goes on, because a function has ended this one.
  void Replace();

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
