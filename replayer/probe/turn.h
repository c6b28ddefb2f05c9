// A thread that does one thing at a time while its owner waits: what stands for a recorded thread.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace acltape::replayer::probe {

class Turn {
 public:
  Turn() : thread_([this] { Loop(); }) {}
  ~Turn() {
    {
      std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  // Runs `work` in the thread and returns when it has ended; throws what it threw.
  void Run(const std::function<void()>& work) {
    std::unique_lock lock(mutex_);
    work_ = &work;
    changed_.notify_all();
    changed_.wait(lock, [this] { return work_ == nullptr; });
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  }

 private:
  void Loop() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return ended_ || work_ != nullptr; });
      if (ended_) return;
      try {
        (*work_)();
      } catch (...) {
        failure_ = std::current_exception();
      }
      work_ = nullptr;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<void()>* work_ = nullptr;
  std::exception_ptr failure_;
  bool ended_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace acltape::replayer::probe
