// Buffer identity. The plug-in puts an allocator before the framework's host allocator: each block
// gets a header of one cache line in front that carries a buffer id for the life of the block. So a
// tensor's buffer is known first-hand, in constant time, and a reused address is another buffer.
#pragma once

#include <c10/core/StorageImpl.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "recorder/agent/tape.h"

namespace acltape::torch_plugin {

// The recorder's knowledge of a buffer's content, as bits. It holds in one window alone.
enum BufferState : uint32_t {
  kContentKnown = 1,  // written by recorded calls, or kept as a snapshot
  kHasDigest = 2,     // `digest` is that of the content at `verified_call`
  kDeviceInput = 4,   // kept as an input of a leaf that ran on a device
};

struct alignas(64) BufferHeader {
  void* data;
  uint64_t buffer_id;
  uint64_t bytes;
  std::atomic<uint32_t> state;  // BufferState, above it the low bits of the window
  uint32_t process;             // agent::Tape::process of the allocation
  uint8_t foreign;              // 1: not from the framework's allocator
  uint8_t device;               // as in wire::BufferBirthRecord: 0 the host, n + 1 device n
  uint8_t pooled;               // 1: the block is as large as its size class
  std::atomic<uint8_t> told;    // 1: its birth is recorded
  uint32_t magic;               // set while the block is in use
  uint64_t digest;              // XXH3-64 of the whole content
  uint64_t sample;              // XXH3-64 of the sampled cache lines
  uint64_t sampled_reads;       // reads checked by sample alone since the last full check
};
static_assert(sizeof(BufferHeader) == 64);

// The header of a buffer that the framework's allocator did not allocate.
struct ForeignHeader {
  BufferHeader buffer{};
  std::atomic<const c10::StorageImpl*> owner{nullptr};  // null: the storage has ended
};

// Writes the birth of a buffer that was born while recording was closed, when a recorded call first
// uses it.
void RecordFirstUse(agent::Tape* tape, BufferHeader& header);
// Write the birth and the death of a buffer to the thread's ring. `block_id` as in
// wire::BufferBirthRecord.
void RecordBirth(agent::Tape* tape, BufferHeader& header, uint64_t block_id);
void RecordDeath(agent::Tape* tape, const BufferHeader& header);

constexpr int kStateBits = 8;
inline uint32_t KnownState(const BufferHeader& header, uint32_t window) {
  const uint32_t state = header.state.load(std::memory_order_relaxed);
  return (state ^ window << kStateBits) >> kStateBits == 0 ? state & ((1u << kStateBits) - 1) : 0;
}
inline void SetKnownState(BufferHeader& header, uint32_t window, uint32_t bits) {
  header.state.store(window << kStateBits | bits, std::memory_order_relaxed);
}

// Frees the blocks that a thread keeps for its next allocations.
void FreeSpareBlocks(agent::Tape* tape);

// Installs the allocator; false when the framework's allocator does not allow it.
bool InstallAllocator();

// Gives a buffer to a storage whose memory is not from this allocator, such as memory of NumPy or
// of a device; see foreign.cpp.
BufferHeader* AdoptForeign(const c10::StorageImpl* storage);

// From here on the ends of storages that captures made are recorded before each execution of a
// graph; see foreign.cpp.
void FollowGraphs();

// Frees a block of the allocator, given its data.
void ReleaseBlock(void* data);

inline BufferHeader* HeaderBefore(void* data) {
  return reinterpret_cast<BufferHeader*>(static_cast<char*>(data) - sizeof(BufferHeader));
}

// The header of a storage's buffer. Storages from elsewhere (NumPy, mapped files, the device of an
// adapter such as torch_npu) are adopted at first sight. nullptr when the storage has no memory or
// lies on another kind of device.
inline BufferHeader* HeaderOf(const c10::StorageImpl* storage) {
  const c10::DataPtr& data = storage->data_ptr();
  if (__builtin_expect(data.get_deleter() == &ReleaseBlock, 1)) {
    return data.get() == nullptr ? nullptr : HeaderBefore(data.get_context());
  }
  const c10::DeviceType kind = data.device().type();
  if (data.get() == nullptr ||
      (kind != c10::DeviceType::CPU && kind != c10::DeviceType::PrivateUse1)) {
    return nullptr;
  }
  return AdoptForeign(storage);
}

}  // namespace acltape::torch_plugin
