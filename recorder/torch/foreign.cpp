// Buffers that the framework's host allocator did not allocate: NumPy arrays, mapped files, blobs
// of a C++ program, memory of a device.
//
// They are known by their StorageImpl. A weak reference keeps that object's address from being
// reused, so the identity is exact without touching the storage: code that checks a storage's
// deleter (shared memory, a device's caching allocator) sees it unchanged.
#include <c10/core/StorageImpl.h>
#include <c10/util/intrusive_ptr.h>
#include <dlfcn.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "recorder/agent/graph_moment.h"
#include "recorder/agent/tape.h"
#include "recorder/torch/allocator.h"

namespace acltape::torch_plugin {

namespace {

struct Foreign {
  c10::weak_intrusive_ptr<c10::StorageImpl> storage;
  std::unique_ptr<BufferHeader> header;
};

struct Table {
  std::mutex mutex;
  std::unordered_map<const c10::StorageImpl*, Foreign> rows;
  // The rows of a device by the first byte of their memory. Several storages can share memory.
  std::multimap<uintptr_t, const c10::StorageImpl*> by_address;
  // Those that were born on a device while some stream captured. Their ends are noticed before the
  // next execution of a graph.
  std::vector<const c10::StorageImpl*> of_captures;
  int captures = 0;  // open ones
  size_t sweep_at = 64;
};
Table& ForeignTable() {
  static Table* table = new Table;  // never destroyed: see RecordingAllocator
  return *table;
}

// The number of a device in wire::BufferBirthRecord.
uint8_t DeviceOf(const c10::Device& device) {
  if (device.is_cpu()) return 0;
  return static_cast<uint8_t>(1 + (device.has_index() ? device.index() : 0));
}

// The block of the ACL interface that the memory is a part of: 0 where there is none, or where that
// level is not recorded.
uint64_t BlockOf(const void* address) {
  using Find = uint64_t (*)(const void*);
  static const auto find = reinterpret_cast<Find>(dlsym(RTLD_DEFAULT, "acltape_block_of"));
  return find == nullptr ? 0 : find(address);
}

// The buffer is met for the first time.
void Born(agent::Tape* tape, const c10::StorageImpl* storage, BufferHeader& header) {
  header.data = storage->data_ptr().get();
  header.buffer_id = tape->NextBufferId();
  header.bytes = storage->nbytes();
  header.state.store(0, std::memory_order_relaxed);
  header.process = tape->process;
  header.device = DeviceOf(storage->data_ptr().device());
  header.foreign = header.device == 0 ? 1 : 0;
  RecordBirth(tape, header, BlockOf(header.data));
}

void Ended(agent::Tape* tape, const BufferHeader& header) {
  if (header.process == tape->process) RecordDeath(tape, header);
}

uintptr_t FirstByte(const BufferHeader& header) { return reinterpret_cast<uintptr_t>(header.data); }

void ForgetAddress(Table& table, const c10::StorageImpl* storage, const BufferHeader& header) {
  auto [entry, end] = table.by_address.equal_range(FirstByte(header));
  for (; entry != end; ++entry) {
    if (entry->second != storage) continue;
    table.by_address.erase(entry);
    return;
  }
}

// Memory that the device's allocator gives to a new storage is no storage's any more that has
// ended. So their ends are recorded before its birth: who reads such bytes later through a captured
// graph reads what the new storage holds. A storage that has not ended shares the memory.
void EndOverlapped(agent::Tape* tape, Table& table, uintptr_t first, uintptr_t end) {
  auto entry = table.by_address.lower_bound(first);
  if (entry != table.by_address.begin()) {
    entry = table.by_address.lower_bound(std::prev(entry)->first);
  }
  while (entry != table.by_address.end() && entry->first < end) {
    const auto row = table.rows.find(entry->second);
    const bool overlaps = entry->first + row->second.header->bytes > first;
    if (!overlaps || !row->second.storage.expired()) {
      ++entry;
      continue;
    }
    Ended(tape, *row->second.header);
    table.rows.erase(row);
    entry = table.by_address.erase(entry);
  }
}

// Takes a storage of a device, whose header has no memory yet, into the table.
void BornOnDevice(agent::Tape* tape, Table& table, const c10::StorageImpl* storage,
                  BufferHeader& header) {
  const auto first = reinterpret_cast<uintptr_t>(storage->data_ptr().get());
  EndOverlapped(tape, table, first, first + storage->nbytes());
  Born(tape, storage, header);
  table.by_address.emplace(first, storage);
  if (table.captures > 0) table.of_captures.push_back(storage);
}

// Records the ends of those storages of captures that have ended.
void SweepCaptures(agent::Tape* tape, Table& table) {
  std::erase_if(table.of_captures, [&](const c10::StorageImpl* storage) {
    const auto row = table.rows.find(storage);
    if (row == table.rows.end()) return true;
    if (!row->second.storage.expired()) return false;
    Ended(tape, *row->second.header);
    ForgetAddress(table, storage, *row->second.header);
    table.rows.erase(row);
    return true;
  });
}

void TakeGraphMoment(agent::GraphMoment moment, agent::Tape& tape) {
  Table& table = ForeignTable();
  std::lock_guard<std::mutex> lock(table.mutex);
  if (moment == agent::GraphMoment::kCaptureBegins) ++table.captures;
  if (moment == agent::GraphMoment::kCaptureEnded) table.captures = std::max(0, table.captures - 1);
  if (moment != agent::GraphMoment::kCaptureBegins) SweepCaptures(&tape, table);
}

}  // namespace

void FollowGraphs() { agent::g_graph_moment.store(TakeGraphMoment, std::memory_order_release); }

BufferHeader* AdoptForeign(const c10::StorageImpl* storage) {
  agent::Tape* tape = agent::CurrentTape();
  if (tape == nullptr) return nullptr;
  Table& table = ForeignTable();
  std::lock_guard<std::mutex> lock(table.mutex);
  auto found = table.rows.find(storage);
  if (found != table.rows.end()) {
    // Memory of a device is taken anew when a storage is resized; the header may be in use, so the
    // object stays.
    BufferHeader& known = *found->second.header;
    if (known.device != 0 && known.data != storage->data_ptr().get()) {
      Ended(tape, known);
      ForgetAddress(table, storage, known);
      BornOnDevice(tape, table, storage, known);
    }
    return &known;
  }
  if (table.rows.size() >= table.sweep_at) {
    for (auto row = table.rows.begin(); row != table.rows.end();) {
      if (!row->second.storage.expired()) {
        ++row;
        continue;
      }
      Ended(tape, *row->second.header);
      ForgetAddress(table, row->first, *row->second.header);
      row = table.rows.erase(row);
    }
    table.sweep_at = std::max<size_t>(64, 2 * table.rows.size());
  }
  auto header = std::make_unique<BufferHeader>();
  if (DeviceOf(storage->data_ptr().device()) == 0) {
    Born(tape, storage, *header);
  } else {
    BornOnDevice(tape, table, storage, *header);
  }
  auto strong =
      c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(const_cast<c10::StorageImpl*>(storage));
  BufferHeader* result = header.get();
  table.rows.emplace(storage,
                     Foreign{c10::weak_intrusive_ptr<c10::StorageImpl>(strong), std::move(header)});
  return result;
}

}  // namespace acltape::torch_plugin
