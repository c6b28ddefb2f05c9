// A stream's knowledge about the progress of others: how many of their tasks end before the tasks
// that are submitted here from now on. Records and waits of events pass it on. Only memory pools
// ask (POOL-05), so nothing is kept while there is none.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

namespace acltape::device {

// A number of tasks of a stream, which is named by its serial number.
struct StreamPosition {
  uint64_t stream = 0;
  uint64_t tasks = 0;
};

class StreamOrder {
 public:
  using Known = std::map<uint64_t, uint64_t>;  // tasks by stream

  // Pools that are alive.
  static std::atomic<uint32_t> wanted;
  static bool Wanted() { return wanted.load(std::memory_order_relaxed) != 0; }

  bool Covers(const StreamPosition& position) const {
    std::lock_guard lock(mutex_);
    auto known = known_.find(position.stream);
    return known != known_.end() && known->second >= position.tasks;
  }

  // Returns the knowledge of a record at this position of the stream itself.
  std::shared_ptr<const Known> At(const StreamPosition& own) const {
    auto told = std::make_shared<Known>();
    {
      std::lock_guard lock(mutex_);
      *told = known_;
    }
    (*told)[own.stream] = own.tasks;
    return told;
  }

  // Called after a wait for a record that passed this on.
  void Learn(const Known& told) {
    std::lock_guard lock(mutex_);
    for (const auto& [stream, tasks] : told) {
      uint64_t& known = known_[stream];
      if (known < tasks) known = tasks;
    }
  }

 private:
  mutable std::mutex mutex_;
  Known known_;
};

}  // namespace acltape::device
