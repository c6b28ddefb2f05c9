// Pinned host memory that queued work of a stream still uses, and comparisons that wait for that
// work.
//
// The host waits for a stream only where the program waited. At other points device work may depend
// on calls that the host has not issued yet, and a wait would not end. A piece of memory is free
// again once the host has seen its stream idle.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "replayer/acl_level/task.h"
#include "replayer/device/device.h"

namespace acltape::replayer::acl_level {

class InFlight {
 public:
  using Check = std::function<void(const Take& take, const uint8_t* bytes)>;
  // `relief` is called when much memory is in use. It may wait for streams; it then calls Synced or
  // SyncedAll.
  InFlight(Device& device, Check check, std::function<void()> relief)
      : device_(device), check_(std::move(check)), relief_(std::move(relief)) {}

  // Returns memory for work that is issued on the stream now. It is valid until Synced.
  uint8_t* Piece(int64_t stream, size_t bytes);
  // Copies the take's range to the host in the order of the stream. The comparison is made once the
  // copy has ended.
  void Download(int64_t stream, aclrtStream handle, const Take& take);
  // Compares a take later. Its content is at `bytes` once the stream has reached it.
  void CheckLater(int64_t stream, const Take& take, const uint8_t* bytes);

  void Synced(int64_t stream);
  void SyncedAll();
  // Returns a number that grows each time the stream has been seen idle.
  int64_t Epoch(int64_t stream) const {
    const auto found = epochs_.find(stream);
    return all_epoch_ + (found == epochs_.end() ? 0 : found->second);
  }

 private:
  struct Chunk {
    Block block;
    size_t used = 0;
    int64_t pieces = 0;  // in use
  };
  struct Item {
    int64_t stream = 0;
    Chunk* chunk = nullptr;    // null: the memory is not of a chunk
    std::optional<Take> take;  // content to compare, if any
    const uint8_t* bytes = nullptr;
  };
  std::pair<Chunk*, uint8_t*> Acquire(size_t bytes);
  void Finish(Item& item);

  Device& device_;
  Check check_;
  std::function<void()> relief_;
  std::vector<std::unique_ptr<Chunk>> chunks_;
  Chunk* current_ = nullptr;
  std::deque<Item> items_;
  bool relieving_ = false;
  std::map<int64_t, int64_t> epochs_;
  int64_t all_epoch_ = 0;
};

// Copies what a take is about to `to`.
void IssueTake(const DeviceWork& work, const Take& take, uint8_t* to, OnStream on);

}  // namespace acltape::replayer::acl_level
