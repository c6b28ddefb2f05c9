#include "recorder/acl/memory.h"

#include <stdlib.h>
#include <string.h>

#include <atomic>

#include "acl/invoke/memory_padding.h"
#include "recorder/acl/thread.h"
#include "recorder/agent/lock.h"
#include "recorder/agent/memory.h"
#include "recorder/agent/pointer_map.h"

namespace acltape::acl_agent {

namespace {

// Sorted by address, without overlaps.
agent::Mutex g_mutex;
Block* g_blocks = nullptr;
size_t g_count = 0;
size_t g_capacity = 0;
std::atomic<uint64_t> g_generation{1};  // changes with the table and when less is known

// The block that the thread met last, while the table is the same.
struct Recent {
  uint64_t begin;
  uint64_t bytes;
  uint64_t buffer_id;
  uint64_t generation;
  uint32_t device;
};
__thread Recent t_recent __attribute__((tls_model("initial-exec")));

// Returns the position of the first block that begins after `address`.
size_t After(uint64_t address) {
  size_t low = 0;
  size_t high = g_count;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (g_blocks[middle].begin <= address) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

void RemoveAt(size_t index) {
  memmove(g_blocks + index, g_blocks + index + 1, (g_count - index - 1) * sizeof(Block));
  g_count--;
}

void Insert(const Block& block) {
  if (g_count == g_capacity) {
    const size_t capacity = g_capacity == 0 ? 256 : 2 * g_capacity;
    void* larger = agent::Resize(static_cast<void*>(g_blocks), capacity * sizeof(Block),
                                 wire::LeftOut::kIdentities);
    if (larger == nullptr) return;
    g_blocks = static_cast<Block*>(larger);
    g_capacity = capacity;
  }
  size_t index = After(block.begin);
  while (index > 0 && g_blocks[index - 1].begin + g_blocks[index - 1].bytes > block.begin)
    RemoveAt(--index);
  while (index < g_count && g_blocks[index].begin < block.begin + block.bytes) RemoveAt(index);
  memmove(g_blocks + index + 1, g_blocks + index, (g_count - index) * sizeof(Block));
  g_blocks[index] = block;
  g_count++;
  g_generation.fetch_add(1, std::memory_order_release);
}

// Known ranges of a buffer: sorted, apart from each other.
struct Range {
  uint64_t begin;
  uint64_t end;
};
struct Ranges {
  Range* ranges;
  uint32_t count;
  uint32_t capacity;
  uint32_t window;
  bool shared;  // never known
};
agent::Mutex g_known_mutex;
uint32_t g_known_window = 0;
agent::PointerMap<Ranges>& Known() {
  static agent::PointerMap<Ranges> known;
  return known;
}
const void* KeyOf(uint64_t buffer_id) { return reinterpret_cast<const void*>(buffer_id << 4); }

// Returns the bytes of a buffer that are known in the present window.
Ranges KnownOf(uint64_t buffer_id) {
  Ranges known{};
  Known().Get(KeyOf(buffer_id), &known);
  if (known.window != g_known_window) known.count = 0;
  known.window = g_known_window;
  return known;
}

// Blocks whose birth is not told so far.
agent::PointerMap<Block>& Untold() {
  static agent::PointerMap<Block> untold;
  return untold;
}
std::atomic<uint64_t> g_untold_count{0};

void WriteBirth(agent::Tape* tape, const Block& block, uint64_t tick, uint64_t call_id,
                uint32_t flags = wire::kBufferBlock) {
  uint32_t total = 0;
  auto* record = tape->Begin<wire::BufferBirthRecord>(wire::RecordKind::kBufferBirth, 0, &total);
  if (record == nullptr) return;
  record->buffer_id = block.buffer_id;
  record->address = block.begin;
  record->bytes = block.bytes;
  record->tick = tick;
  record->call_id = call_id;
  record->device = block.device;
  record->flags = flags;
  record->block_id = 0;
  tape->End(total);
}

bool TakeUntold(uint64_t buffer_id, Block* block) {
  if (__builtin_expect(g_untold_count.load(std::memory_order_relaxed) == 0, 1)) return false;
  if (!Untold().Take(KeyOf(buffer_id), block)) return false;
  g_untold_count.fetch_sub(1, std::memory_order_relaxed);
  return true;
}

}  // namespace

void RecordFirstUse(Thread& thread, uint64_t buffer_id) {
  Block block;
  if (TakeUntold(buffer_id, &block)) WriteBirth(thread.tape, block, thread.tape->window_tick, 0);
}

bool FindBlock(uint64_t address, Block* block) {
  if (address == 0) return false;
  const uint64_t generation = g_generation.load(std::memory_order_acquire);
  const Recent& recent = t_recent;
  if (recent.generation == generation && address - recent.begin < recent.bytes) {
    *block = {recent.begin, recent.bytes, recent.buffer_id, recent.device};
    return true;
  }
  agent::Lock lock(g_mutex);
  const size_t index = After(address);
  if (index == 0 || address - g_blocks[index - 1].begin >= g_blocks[index - 1].bytes) return false;
  *block = g_blocks[index - 1];
  t_recent = {block->begin, block->bytes, block->buffer_id,
              g_generation.load(std::memory_order_relaxed), block->device};
  return true;
}

uint64_t DevicesWithMemory() {
  agent::Lock lock(g_mutex);
  uint64_t devices = 0;
  for (size_t i = 0; i < g_count; ++i) {
    const uint32_t device = g_blocks[i].device;
    if (device >= 1 && device <= 64) devices |= uint64_t{1} << (device - 1);
  }
  return devices;
}

void AddBlock(Thread& thread, uint64_t begin, uint64_t bytes, uint32_t device) {
  agent::Tape* tape = thread.tape;
  const Block block{begin, bytes, tape->NextBufferId(), device};
  {
    agent::Lock lock(g_mutex);
    Insert(block);
  }
  if (!thread.muted) {
    WriteBirth(tape, block, agent::Tick(), tape->open_call);
  } else if (Untold().Put(KeyOf(block.buffer_id), block) == agent::PutResult::kNoMemory) {
    agent::LeaveOut(wire::LeftOut::kIdentities);
  } else {
    g_untold_count.fetch_add(1, std::memory_order_relaxed);
  }
}

void StretchBlock(Thread& thread, uint64_t end, Block* block) {
  {
    agent::Lock lock(g_mutex);
    const size_t index = After(block->begin);
    if (index == 0 || g_blocks[index - 1].buffer_id != block->buffer_id) return;
    Block& own = g_blocks[index - 1];
    uint64_t limit = (own.begin + own.bytes + acl::kMemoryPadding + acl::kMemoryPage - 1) /
                     acl::kMemoryPage * acl::kMemoryPage;
    if (index < g_count && g_blocks[index].begin < limit) limit = g_blocks[index].begin;
    if (end <= own.bytes || end > limit - own.begin) return;
    own.bytes = end;
    *block = own;
    g_generation.fetch_add(1, std::memory_order_release);
  }
  WriteBirth(thread.tape, *block, agent::Tick(), 0, wire::kBufferStretched);
}

bool TakeBlock(uint64_t begin, Block* block) {
  agent::Lock lock(g_mutex);
  const size_t index = After(begin);
  if (index == 0 || g_blocks[index - 1].begin != begin) return false;
  *block = g_blocks[index - 1];
  RemoveAt(index - 1);
  g_generation.fetch_add(1, std::memory_order_release);
  return true;
}

void PutBlock(const Block& block) {
  agent::Lock lock(g_mutex);
  Insert(block);
}

void RecordDeath(Thread& thread, const Block& block) {
  {
    agent::Lock lock(g_known_mutex);
    Ranges ranges{};
    if (Known().Take(KeyOf(block.buffer_id), &ranges)) free(ranges.ranges);
  }
  Block untold;
  if (TakeUntold(block.buffer_id, &untold)) return;
  agent::Tape* tape = thread.tape;
  uint32_t total = 0;
  auto* record = tape->Begin<wire::BufferDeathRecord>(wire::RecordKind::kBufferDeath, 0, &total);
  if (record == nullptr) return;
  record->buffer_id = block.buffer_id;
  record->tick = agent::Tick();
  record->call_id = tape->open_call;
  tape->End(total);
}

void MarkKnown(uint64_t buffer_id, uint64_t begin, uint64_t end) {
  if (begin >= end) return;
  agent::Lock lock(g_known_mutex);
  Ranges known = KnownOf(buffer_id);
  if (known.shared) return;
  uint32_t first = 0;
  while (first < known.count && known.ranges[first].end < begin) first++;
  uint32_t end_range = first;
  while (end_range < known.count && known.ranges[end_range].begin <= end) {
    if (known.ranges[end_range].begin < begin) begin = known.ranges[end_range].begin;
    if (known.ranges[end_range].end > end) end = known.ranges[end_range].end;
    end_range++;
  }
  if (end_range == first && known.count == known.capacity) {
    const uint32_t capacity = known.capacity == 0 ? 4 : 2 * known.capacity;
    void* larger = agent::TryResize(known.ranges, capacity * sizeof(Range));
    if (larger == nullptr) return;  // the bytes are kept once more, when they are read
    known.ranges = static_cast<Range*>(larger);
    known.capacity = capacity;
  }
  memmove(known.ranges + first + 1, known.ranges + end_range,
          (known.count - end_range) * sizeof(Range));
  known.ranges[first] = {begin, end};
  known.count = known.count - (end_range - first) + 1;
  if (Known().Put(KeyOf(buffer_id), known) == agent::PutResult::kNoMemory) free(known.ranges);
}

void MarkShared(uint64_t address) {
  Block block;
  if (!FindBlock(address, &block)) return;
  agent::Lock lock(g_known_mutex);
  Ranges known = KnownOf(block.buffer_id);
  known.count = 0;
  known.shared = true;
  Known().Put(KeyOf(block.buffer_id), known);
  g_generation.fetch_add(1, std::memory_order_release);
}

bool IsKnown(uint64_t buffer_id, uint64_t begin, uint64_t end) {
  if (begin >= end) return true;
  agent::Lock lock(g_known_mutex);
  const Ranges known = KnownOf(buffer_id);
  for (uint32_t i = 0; i < known.count; ++i) {
    if (known.ranges[i].begin <= begin) {
      if (end <= known.ranges[i].end) return true;
    } else {
      break;
    }
  }
  return false;
}

void ForgetContents(uint32_t window) {
  agent::Lock lock(g_known_mutex);
  if (window <= g_known_window) return;
  g_known_window = window;
  g_generation.fetch_add(1, std::memory_order_release);
}

uint64_t MemoryGeneration() { return g_generation.load(std::memory_order_acquire); }

void ForgetMemoryLocks() {
  Untold().ForgetLocks();
  g_mutex.Forget();
  g_known_mutex.Forget();
  Known().ForgetLocks();
}

}  // namespace acltape::acl_agent
