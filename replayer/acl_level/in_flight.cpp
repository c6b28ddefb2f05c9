#include "replayer/acl_level/in_flight.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "replayer/device/memory_plan.h"

namespace acltape::replayer::acl_level {
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
  items_.push_back({stream, chunk, std::nullopt, piece});
  return piece;
}

void InFlight::Download(int64_t stream, aclrtStream handle, const Take& take) {
  const auto [chunk, piece] = Acquire(take.copy.bytes);
  IssueTake(device_.work(), take, piece, handle);
  items_.push_back({stream, chunk, take, piece});
}

void InFlight::CheckLater(int64_t stream, const Take& take, const uint8_t* bytes) {
  items_.push_back({stream, nullptr, take, bytes});
}

void InFlight::Finish(Item& item) {
  if (item.take) check_(*item.take, item.bytes);
  if (item.chunk != nullptr) --item.chunk->pieces;
}

void InFlight::Synced(int64_t stream) {
  ++epochs_[stream];
  for (Item& item : std::exchange(items_, {})) {
    if (item.stream == stream) {
      Finish(item);
    } else {
      items_.push_back(std::move(item));
    }
  }
}

void InFlight::SyncedAll() {
  ++all_epoch_;
  for (Item& item : std::exchange(items_, {})) Finish(item);
}

void IssueTake(const DeviceWork& work, const Take& take, uint8_t* to, OnStream on) {
  if (take.copy.rows != 0) std::memset(to, 0, take.copy.bytes);
  Transfer copy = take.copy;
  copy.to = to;
  Issue(work, copy, on);
}

}  // namespace acltape::replayer::acl_level
