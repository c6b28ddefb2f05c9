#include "runtime/device/host_service.h"

#include <chrono>

#include "runtime/device/futex.h"
#include "runtime/device/task.h"

namespace acltape::device {
namespace {

thread_local const Stream* stream_of_function = nullptr;

// Signals the end of a call also where its function ends the thread (pthread_exit), which unwinds
// the stack.
class RunningCall {
 public:
  explicit RunningCall(HostCall& call) : call_(call) { stream_of_function = call.stream; }
  ~RunningCall() {
    stream_of_function = nullptr;
    call_.done.store(returned_ ? HostCall::kReturned : HostCall::kEndedItsThread,
                     std::memory_order_release);
    FutexWakeAll(call_.done);
  }
  void Run() {
    call_.function(call_.user_data);
    returned_ = true;
  }

 private:
  HostCall& call_;
  bool returned_ = false;
};

void RunAndSignal(HostCall& call) { RunningCall(call).Run(); }

}  // namespace

const Stream* StreamOfHostFunction() { return stream_of_function; }

bool WaitForHostCall(HostCall& call) {
  auto done = [&] { return call.done.load(std::memory_order_acquire) != 0; };
  if (SpinUntil(done)) return true;
  const Runner::Blocked blocked(Runner::Current());
  while (!done()) {
    Runner* runner = Runner::Current();
    if (runner != nullptr && runner->Interrupted()) return false;
    FutexWait(call.done, 0, 10000000);
  }
  return true;
}

HostService::~HostService() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  posted_.notify_all();
  // A thread that a function has ended has started another one before.
  while (true) {
    std::thread thread;
    {
      std::lock_guard lock(mutex_);
      thread = std::move(thread_);
    }
    if (!thread.joinable()) return;
    if (thread.get_id() == std::this_thread::get_id() || Exiting()) {
      thread.detach();
    } else {
      thread.join();
    }
  }
}

void HostService::Replace() {
  std::lock_guard lock(mutex_);
  if (thread_.joinable()) thread_.detach();
  thread_ = std::thread([this] { Serve(); });
}

void HostService::Post(std::shared_ptr<HostCall> call) {
  {
    std::lock_guard lock(mutex_);
    if (!thread_.joinable()) thread_ = std::thread([this] { Serve(); });
    calls_.push_back(std::move(call));
  }
  posted_.notify_one();
}

void HostService::Serve() {
  struct Watch {
    HostService& service;
    bool returned = false;
    ~Watch() {
      if (!returned) service.Replace();
    }
  } watch{*this};
  std::unique_lock lock(mutex_);
  while (true) {
    posted_.wait(lock, [this] { return stop_ || !calls_.empty(); });
    if (calls_.empty()) {
      watch.returned = true;
      return;
    }
    std::shared_ptr<HostCall> call = std::move(calls_.front());
    calls_.pop_front();
    lock.unlock();
    RunAndSignal(*call);
    call.reset();
    lock.lock();
  }
}

void ReportQueue::Post(std::shared_ptr<HostCall> call) {
  {
    std::lock_guard lock(mutex_);
    calls_.push_back(std::move(call));
  }
  posted_.notify_one();
}

bool ReportQueue::Process(int32_t timeout_ms) {
  std::unique_lock lock(mutex_);
  auto arrived = [this] { return !calls_.empty(); };
  if (timeout_ms < 0) {
    posted_.wait(lock, arrived);
  } else if (!posted_.wait_for(lock, std::chrono::milliseconds(timeout_ms), arrived)) {
    return false;
  }
  std::shared_ptr<HostCall> call = std::move(calls_.front());
  calls_.pop_front();
  lock.unlock();
  RunAndSignal(*call);
  return true;
}

}  // namespace acltape::device
