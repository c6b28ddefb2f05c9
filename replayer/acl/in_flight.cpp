#include "replayer/acl/in_flight.h"

#include <algorithm>
#include <cstring>

#include "replayer/memory_plan.h"

namespace acltape::replayer {
namespace {

constexpr size_t kChunkBytes = size_t{8} << 20;
constexpr size_t kManyChunks = 32;

}  // namespace

std::pair<InFlight::Chunk*, uint8_t*> InFlight::Acquire(size_t bytes) {
  bytes = static_cast<size_t>(AlignUp(static_cast<int64_t>(std::max<size_t>(bytes, 1))));
  if (current_ == nullptr || current_->used + bytes > current_->block.bytes()) {
    if (chunks_.size() >= kManyChunks && !relieving_) {
      relieving_ = true;
      relief_();
      relieving_ = false;
    }
    current_ = nullptr;
    for (const auto& chunk : chunks_) {
      if (chunk->pieces == 0 && chunk->block.bytes() >= bytes) current_ = chunk.get();
    }
    if (current_ == nullptr) {
      chunks_.push_back(std::make_unique<Chunk>());
      current_ = chunks_.back().get();
      current_->block = Block(device_, Block::Kind::kPinned, std::max(bytes, kChunkBytes));
    }
    current_->used = 0;
  }
  uint8_t* piece = current_->block.data() + current_->used;
  current_->used += bytes;
  ++current_->pieces;
  return {current_, piece};
}

uint8_t* InFlight::Piece(int64_t stream, size_t bytes) {
  const auto [chunk, piece] = Acquire(bytes);
  Item item;
  item.stream = stream;
  item.chunk = chunk;
  items_.push_back(std::move(item));
  return piece;
}

void InFlight::Download(int64_t stream, aclrtStream handle, const Take& take) {
  const auto [chunk, piece] = Acquire(take.bytes);
  IssueTake(device_, handle, take, piece);
  Item item;
  item.stream = stream;
  item.chunk = chunk;
  item.taken = true;
  item.take = take;
  item.bytes = piece;
  items_.push_back(std::move(item));
}

void InFlight::CheckLater(int64_t stream, const Take& take, const uint8_t* bytes) {
  Item item;
  item.stream = stream;
  item.taken = true;
  item.take = take;
  item.bytes = bytes;
  items_.push_back(std::move(item));
}

void InFlight::Finish(Item& item) {
  if (item.taken) check_(item.take, item.bytes);
  if (item.chunk != nullptr) --item.chunk->pieces;
}

void InFlight::Synced(int64_t stream) {
  ++epochs_[stream];
  std::deque<Item> others;
  std::deque<Item> items = std::move(items_);
  items_.clear();
  for (Item& item : items) {
    if (item.stream == stream) {
      Finish(item);
    } else {
      others.push_back(std::move(item));
    }
  }
  items_ = std::move(others);
}

void InFlight::SyncedAll() {
  ++all_epoch_;
  std::deque<Item> items = std::move(items_);
  items_.clear();
  for (Item& item : items) Finish(item);
}

void IssueTake(const Device& device, aclrtStream stream, const Take& take, uint8_t* pinned) {
  if (take.bytes == 0) return;
  if (take.rows == 0) {
    device.Check(device.api().aclrtMemcpyAsync(pinned, take.bytes, take.address, take.bytes,
                                               ACL_MEMCPY_DEVICE_TO_HOST, stream),
                 "aclrtMemcpyAsync to the host");
    return;
  }
  std::memset(pinned, 0, take.bytes);
  device.Check(
      device.api().aclrtMemcpy2dAsync(pinned, take.to_pitch, take.address, take.from_pitch,
                                      take.width, take.rows, ACL_MEMCPY_DEVICE_TO_HOST, stream),
      "aclrtMemcpy2dAsync to the host");
}

}  // namespace acltape::replayer
