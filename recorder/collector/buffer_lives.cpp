#include "recorder/collector/buffer_lives.h"

#include <algorithm>

namespace acltape::collector {
namespace {

constexpr int64_t IndexOf(int64_t buffer_id, int bits) {
  return buffer_id & ((int64_t{1} << bits) - 1);
}

}  // namespace

BufferLives::Page& BufferLives::PageOf(int64_t buffer_id) {
  const int64_t number = buffer_id >> kPageBits;
  if (number == recent_number_) return *recent_;
  std::unique_ptr<Page>& page = pages_[number];
  if (page == nullptr) page = spare_ != nullptr ? std::move(spare_) : std::make_unique<Page>();
  recent_number_ = number;
  recent_ = page.get();
  return *recent_;
}

// The row is complete; the entry is free again, and with the last entry the page.
void BufferLives::End(Page& page, int64_t buffer_id) {
  const int64_t index = IndexOf(buffer_id, kPageBits);
  writer_.AddBuffer(page.buffers[index]);
  page.states[index] = kUnknown;
  if (--page.used > 0) return;
  const auto found = pages_.find(buffer_id >> kPageBits);
  spare_ = std::move(found->second);
  pages_.erase(found);
  recent_number_ = -1;
  recent_ = nullptr;
}

void BufferLives::Born(const storage::Buffer& buffer) {
  Page& page = PageOf(buffer.buffer_id);
  const int64_t index = IndexOf(buffer.buffer_id, kPageBits);
  storage::Buffer& entry = page.buffers[index];
  uint8_t& state = page.states[index];
  if (state == kUnknown) ++page.used;
  const int64_t free_call = (state & kDied) != 0 ? entry.free_call : 0;
  const int64_t free_ns = (state & kDied) != 0 ? entry.free_ns : 0;
  entry = buffer;
  entry.free_call = free_call;
  entry.free_ns = free_ns;
  if (!stretched_.empty()) {
    const auto found = stretched_.find(buffer.buffer_id);
    if (found != stretched_.end()) entry.bytes = std::max(entry.bytes, found->second);
  }
  state |= kBorn;
  if ((state & kDied) != 0) End(page, buffer.buffer_id);
}

void BufferLives::Died(int64_t buffer_id, int64_t call_id, int64_t at_ns) {
  Page& page = PageOf(buffer_id);
  const int64_t index = IndexOf(buffer_id, kPageBits);
  storage::Buffer& entry = page.buffers[index];
  uint8_t& state = page.states[index];
  if (state == kUnknown) {
    ++page.used;
    entry = storage::Buffer{};
    entry.buffer_id = buffer_id;
  }
  entry.free_call = call_id;
  entry.free_ns = at_ns;
  state |= kDied;
  if ((state & kBorn) != 0) End(page, buffer_id);
}

void BufferLives::Stretched(int64_t buffer_id, int64_t bytes) {
  int64_t& most = stretched_[buffer_id];
  most = std::max(most, bytes);
  writer_.StretchBuffer(buffer_id, most);  // if the row is there
  const auto page = pages_.find(buffer_id >> kPageBits);
  if (page == pages_.end()) return;
  const int64_t index = IndexOf(buffer_id, kPageBits);
  if ((page->second->states[index] & kBorn) == 0) return;
  storage::Buffer& entry = page->second->buffers[index];
  entry.bytes = std::max(entry.bytes, most);
}

void BufferLives::WriteLiving() {
  for (auto& [number, page] : pages_) {
    for (size_t index = 0; index < page->states.size(); ++index) {
      if (page->states[index] != kBorn) continue;
      writer_.AddBuffer(page->buffers[index]);
      page->states[index] |= kWritten;
    }
  }
}

int64_t BufferLives::WriteUnborn() {
  int64_t count = 0;
  for (auto& [number, page] : pages_) {
    for (size_t index = 0; index < page->states.size(); ++index) {
      if (page->states[index] != kDied) continue;
      writer_.AddBuffer(page->buffers[index]);
      ++count;
    }
  }
  return count;
}

}  // namespace acltape::collector
