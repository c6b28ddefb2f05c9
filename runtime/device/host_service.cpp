#include "runtime/device/host_service.h"

#include <chrono>

#include "runtime/device/futex.h"
#include "runtime/device/task.h"

namespace acltape::device {
namespace {

void RunAndSignal(HostCall& call) {
  call.function(call.user_data);
  call.done.store(1, std::memory_order_release);
  FutexWakeAll(call.done);
}

}  // namespace

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
  if (thread_.joinable()) {
    if (thread_.get_id() == std::this_thread::get_id() || Exiting()) {
      thread_.detach();
    } else {
      thread_.join();
    }
  }
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
  std::unique_lock lock(mutex_);
  while (true) {
    posted_.wait(lock, [this] { return stop_ || !calls_.empty(); });
    if (calls_.empty()) return;
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
