#include "recorder/torch/allocator.h"

#include <c10/core/CPUAllocator.h>

#include <cstring>
#include <new>

#include "recorder/agent/tape.h"
#include "recorder/torch/torch_version.h"

namespace acltape::torch_plugin {

namespace {

constexpr size_t kFront = sizeof(BufferHeader);
constexpr size_t kGranule = 64;  // the framework's alignment

c10::Allocator* g_base = nullptr;
c10::DeleterFnPtr g_base_deleter = nullptr;

// Small blocks are kept per thread and used again: with a header in front of a few bytes, malloc's
// aligned path would otherwise cost more than everything else that is recorded of a small operator.
size_t SizeClass(size_t bytes) { return (bytes + kGranule - 1) / kGranule; }

void* TakeSpare(agent::Tape* tape, size_t size_class) {
  auto& spare = tape->spare_blocks[size_class];
  if (spare.first == nullptr) return nullptr;
  void* block = spare.first;
  spare.first = *static_cast<void**>(block);
  spare.count--;
  return block;
}

bool KeepSpare(agent::Tape* tape, size_t size_class, void* block) {
  auto& spare = tape->spare_blocks[size_class];
  if (spare.count >= agent::kSpareBlocks) return false;
  *static_cast<void**>(block) = spare.first;
  spare.first = block;
  spare.count++;
  return true;
}

constexpr uint32_t kMagic = 0x66754261;

__attribute__((always_inline)) inline void WriteBirth(agent::Tape* tape, const BufferHeader& header,
                                                      uint64_t tick, uint64_t call_id,
                                                      uint64_t block_id = 0) {
  uint32_t total = 0;
  auto* record = tape->Begin<wire::BufferBirthRecord>(wire::RecordKind::kBufferBirth, 0, &total);
  if (record == nullptr) return;
  record->buffer_id = header.buffer_id;
  record->address = reinterpret_cast<uint64_t>(header.data);
  record->bytes = header.bytes;
  record->tick = tick;
  record->call_id = call_id;
  record->device = header.device;
  record->flags = wire::kBufferTensor | (header.foreign != 0 ? uint32_t{wire::kBufferForeign} : 0);
  record->block_id = block_id;
  tape->End(total);
}

__attribute__((always_inline)) inline void WriteDeath(agent::Tape* tape,
                                                      const BufferHeader& header) {
  uint32_t total = 0;
  auto* record = tape->Begin<wire::BufferDeathRecord>(wire::RecordKind::kBufferDeath, 0, &total);
  if (record == nullptr) return;
  record->buffer_id = header.buffer_id;
  record->tick = tape->last_tick;
  record->call_id = tape->open_call;
  tape->End(total);
}

__attribute__((always_inline)) inline c10::DataPtr Hand(agent::Tape* tape, void* block,
                                                        size_t bytes, bool pooled) {
  auto* header = new (block) BufferHeader{};
  header->data = static_cast<char*>(block) + kFront;
  header->bytes = bytes;
  header->pooled = pooled ? 1 : 0;
  header->magic = kMagic;
  if (tape != nullptr) {
    header->buffer_id = tape->NextBufferId();
    header->process = tape->process;
    if (__builtin_expect(tape->open, 1)) {
      header->told.store(1, std::memory_order_relaxed);
      WriteBirth(tape, *header, tape->last_tick, tape->open_call);
    }
  } else {
    header->told.store(1, std::memory_order_relaxed);  // it has no identity
  }
  // Context and data are the same pointer, as the framework's raw interface asks for.
  return {header->data, header->data, &ReleaseBlock, c10::Device(c10::DeviceType::CPU)};
}

__attribute__((noinline)) c10::DataPtr AllocateAnew(agent::Tape* tape, size_t bytes, bool pooled) {
  if (bytes == 0) return g_base->allocate(bytes);
  const size_t room = pooled ? SizeClass(bytes) * kGranule : bytes;
  void* block = nullptr;
  try {
    block = g_base->allocate(kFront + room).release_context();
  } catch (const std::exception&) {
    // The memory that the program itself asks for may still be there.
    return g_base->allocate(bytes);
  }
  return Hand(tape, block, bytes, pooled);
}

class RecordingAllocator final : public c10::Allocator {
 public:
  __attribute__((hot)) c10::DataPtr allocate(size_t bytes) ACLTAPE_ALLOCATE_QUALIFIER override {
    agent::Tape* tape = agent::CurrentTape();
    const size_t size_class = SizeClass(bytes);
    // A memory profile of the program must see each of its allocations.
    if (__builtin_expect(
            tape == nullptr || size_class >= agent::kSpareClasses || c10::memoryProfilingEnabled(),
            0)) {
      return AllocateAnew(tape, bytes, false);
    }
    void* block = TakeSpare(tape, size_class);
    if (__builtin_expect(block == nullptr, 0)) return AllocateAnew(tape, bytes, true);
    return Hand(tape, block, bytes, true);
  }
  c10::DeleterFnPtr raw_deleter() const override { return &ReleaseBlock; }
#if ACLTAPE_ALLOCATOR_HAS_COPY
  void copy_data(void* to, const void* from, size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }
#endif
};

}  // namespace

__attribute__((hot)) void ReleaseBlock(void* data) {
  if (data == nullptr) return;
  BufferHeader* header = HeaderBefore(data);
  if (header->magic != kMagic) {
    g_base_deleter(data);  // allocated before the recorder came
    return;
  }
  header->magic = 0;
  agent::Tape* tape = agent::CurrentTape();
  if (tape != nullptr) {
    // A forked child frees its copy of the parent's buffers; those live on in the parent.
    if (tape->process == header->process && header->buffer_id != 0 &&
        header->told.load(std::memory_order_relaxed) != 0) {
      WriteDeath(tape, *header);
    }
    const size_t size_class = SizeClass(header->bytes);
    if (size_class < agent::kSpareClasses && header->pooled != 0 &&
        KeepSpare(tape, size_class, header)) {
      return;
    }
  }
  g_base_deleter(header);
}

void RecordBirth(agent::Tape* tape, BufferHeader& header, uint64_t block_id) {
  header.told.store(1, std::memory_order_relaxed);
  WriteBirth(tape, header, tape->last_tick, tape->open_call, block_id);
}

__attribute__((cold)) void RecordFirstUse(agent::Tape* tape, BufferHeader& header) {
  if (header.told.exchange(1, std::memory_order_relaxed) == 0)
    WriteBirth(tape, header, tape->window_tick, 0);
}

void RecordDeath(agent::Tape* tape, const BufferHeader& header) {
  if (header.told.load(std::memory_order_relaxed) != 0) WriteDeath(tape, header);
}

void FreeSpareBlocks(agent::Tape* tape) {
  for (size_t size_class = 0; size_class < agent::kSpareClasses; ++size_class) {
    while (void* block = TakeSpare(tape, size_class)) g_base_deleter(block);
  }
}

bool InstallAllocator() {
  g_base = c10::GetAllocator(c10::DeviceType::CPU);
  g_base_deleter = g_base->raw_deleter();
  if (g_base_deleter == nullptr) return false;
  // Never destroyed: tensors may outlive every static object.
  c10::SetAllocator(c10::DeviceType::CPU, new RecordingAllocator, 255);
  return true;
}

}  // namespace acltape::torch_plugin
