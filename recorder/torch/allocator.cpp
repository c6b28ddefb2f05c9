#include "recorder/torch/allocator.h"

#include <c10/core/CPUAllocator.h>

#include <cstdlib>
#include <cstring>
#include <new>

#include "recorder/agent/tape.h"
#include "recorder/torch/torch_version.h"

namespace acltape::torch_plugin {

namespace {

c10::Allocator* g_base = nullptr;
c10::DeleterFnPtr g_base_deleter = nullptr;

void Release(void* context) {
  auto* header = static_cast<BufferHeader*>(context);
  // A forked child frees its copy of the parent's buffers; those live on in the parent.
  agent::Tape* tape = agent::CurrentTape();
  if (tape != nullptr && tape->process == header->process) RecordDeath(tape, *header);
  g_base_deleter(header->data);
  if (tape == nullptr) {
    std::free(header);
  } else {
    header->data = tape->spare_headers;
    tape->spare_headers = header;
  }
}

class RecordingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) ACLTAPE_ALLOCATE_QUALIFIER override {
    agent::Tape* tape = bytes != 0 ? agent::CurrentTape() : nullptr;
    if (tape == nullptr) return g_base->allocate(bytes);
    c10::DataPtr block = g_base->allocate(bytes);
    void* memory = tape->spare_headers;
    if (memory != nullptr) {
      tape->spare_headers = static_cast<BufferHeader*>(memory)->data;
    } else if ((memory = std::malloc(sizeof(BufferHeader))) == nullptr) {
      return block;
    }
    const c10::Device device = block.device();
    auto* header = new (memory) BufferHeader{};
    header->data = block.release_context();
    header->buffer_id = tape->NextBufferId();
    header->bytes = bytes;
    header->process = tape->process;
    RecordBirth(tape, *header);
    return {header->data, header, &Release, device};
  }
#if ACLTAPE_ALLOCATOR_HAS_COPY
  void copy_data(void* to, const void* from, size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }
#endif
};

}  // namespace

void RecordBirth(agent::Tape* tape, const BufferHeader& header) {
  uint32_t total = 0;
  auto* record = tape->Begin<wire::BufferBirthRecord>(wire::RecordKind::kBufferBirth, 0, &total);
  if (record == nullptr) return;
  record->buffer_id = header.buffer_id;
  record->address = reinterpret_cast<uint64_t>(header.data);
  record->bytes = header.bytes;
  record->tick = tape->last_tick;
  record->call_id = tape->open_call;
  record->device = 0;
  record->flags = header.foreign != 0 ? uint32_t{wire::kBufferForeign} : 0;
  tape->End(total);
}

void RecordDeath(agent::Tape* tape, const BufferHeader& header) {
  uint32_t total = 0;
  auto* record = tape->Begin<wire::BufferDeathRecord>(wire::RecordKind::kBufferDeath, 0, &total);
  if (record == nullptr) return;
  record->buffer_id = header.buffer_id;
  record->tick = tape->last_tick;
  record->call_id = tape->open_call;
  tape->End(total);
}

void FreeSpareHeaders(agent::Tape* tape) {
  while (tape->spare_headers != nullptr) {
    auto* header = static_cast<BufferHeader*>(tape->spare_headers);
    tape->spare_headers = header->data;
    std::free(header);
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

BufferHeader* HeaderOf(const c10::StorageImpl* storage) {
  const c10::DataPtr& data = storage->data_ptr();
  if (__builtin_expect(data.get_deleter() == &Release, 1)) {
    return static_cast<BufferHeader*>(data.get_context());
  }
  if (data.get() == nullptr || data.device().type() != c10::DeviceType::CPU) return nullptr;
  return AdoptForeign(storage);
}

}  // namespace acltape::torch_plugin
