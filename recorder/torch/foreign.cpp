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
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "recorder/agent/graph_moment.h"
#include "recorder/agent/tape.h"
#include "recorder/torch/allocator.h"
#include "recorder/torch/thread_state.h"

namespace acltape::torch_plugin {

namespace {

// Gives single objects, which are the nodes of the table's containers, from a list of used ones: a
// storage of a device begins and ends with nearly every operator. For use with the table's lock.
template <typename T>
struct Recycled {
  using value_type = T;
  Recycled() = default;
  template <typename Other>
  Recycled(const Recycled<Other>&) {}  // NOLINT(google-explicit-constructor): containers convert

  T* allocate(size_t count) {
    if (count != 1 || used == nullptr) return std::allocator<T>().allocate(count);
    return reinterpret_cast<T*>(std::exchange(used, used->next));
  }
  void deallocate(T* memory, size_t count) {
    if (count != 1) return std::allocator<T>().deallocate(memory, count);
    used = new (memory) Used{used};
  }
  bool operator==(const Recycled&) const { return true; }

 private:
  struct Used {
    Used* next;
  };
  // NOLINTNEXTLINE(bugprone-sizeof-expression): T may be a pointer.
  static_assert(sizeof(T) >= sizeof(Used));
  inline static Used* used = nullptr;
};
template <typename Key, typename Value>
using Node = Recycled<std::pair<const Key, Value>>;

struct Foreign;
using Storage = const c10::StorageImpl*;
using Row = std::pair<const Storage, Foreign>;  // stays where it is while the storage has one
using ByAddress = std::multimap<uintptr_t, Row*, std::less<>, Node<uintptr_t, Row*>>;

struct Foreign {
  c10::weak_intrusive_ptr<c10::StorageImpl> storage;
  ForeignHeader* header;
  ByAddress::iterator place;  // its entry there, if the storage is a device's
};

struct Table {
  std::mutex mutex;
  std::unordered_map<Storage, Foreign, std::hash<Storage>, std::equal_to<>, Node<Storage, Foreign>>
      rows;
  // The rows of a device by the first byte of their memory. Several storages can share memory.
  ByAddress by_address;
  // Headers are used again and never freed: a thread may still look at one whose storage has ended.
  std::vector<ForeignHeader*> spare_headers;
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

ForeignHeader* NewHeader(Table& table) {
  if (table.spare_headers.empty()) return new ForeignHeader;
  ForeignHeader* header = table.spare_headers.back();
  table.spare_headers.pop_back();
  return header;
}

// The storage has ended, and with it its row.
void GiveBack(Table& table, ForeignHeader* header) {
  header->owner.store(nullptr, std::memory_order_relaxed);
  table.spare_headers.push_back(header);
}

void ForgetAddress(Table& table, const Foreign& foreign) {
  if (foreign.header->buffer.device != 0) table.by_address.erase(foreign.place);
}

// Memory that the device's allocator gives to a new storage is no storage's any more that has
// ended. So their ends are recorded before its birth: who reads such bytes later through a captured
// graph reads what the new storage holds. A storage that has not ended shares the memory.
//
// The new storage's row takes over the place of one that began at the same byte, which is the usual
// case and leaves the tree as it is.
void PlaceRow(agent::Tape* tape, Table& table, Row& row, uintptr_t first, uintptr_t end) {
  auto entry = table.by_address.lower_bound(first);
  if (entry != table.by_address.begin()) {
    const uintptr_t before = std::prev(entry)->first;
    do {
      --entry;
    } while (entry != table.by_address.begin() && std::prev(entry)->first == before);
  }
  bool placed = false;
  while (entry != table.by_address.end() && entry->first < end) {
    const Foreign& other = entry->second->second;
    const bool overlaps = entry->first + other.header->buffer.bytes > first;
    if (!overlaps || !other.storage.expired()) {
      ++entry;
      continue;
    }
    Ended(tape, other.header->buffer);
    GiveBack(table, other.header);
    table.rows.erase(entry->second->first);
    if (!placed && entry->first == first) {
      placed = true;
      entry->second = &row;
      row.second.place = entry++;
    } else {
      entry = table.by_address.erase(entry);
    }
  }
  if (!placed) row.second.place = table.by_address.emplace_hint(entry, first, &row);
}

// Takes a storage of a device, whose header has no memory yet, into the table.
void BornOnDevice(agent::Tape* tape, Table& table, Row& row) {
  const Storage storage = row.first;
  const auto first = reinterpret_cast<uintptr_t>(storage->data_ptr().get());
  PlaceRow(tape, table, row, first, first + storage->nbytes());
  Born(tape, storage, row.second.header->buffer);
  if (table.captures > 0) table.of_captures.push_back(storage);
}

// Records the ends of those storages of captures that have ended.
void SweepCaptures(agent::Tape* tape, Table& table) {
  std::erase_if(table.of_captures, [&](const c10::StorageImpl* storage) {
    const auto row = table.rows.find(storage);
    if (row == table.rows.end()) return true;
    if (!row->second.storage.expired()) return false;
    Ended(tape, row->second.header->buffer);
    ForgetAddress(table, row->second);
    GiveBack(table, row->second.header);
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

namespace {

ForeignHeader* FindOrAdopt(agent::Tape* tape, const c10::StorageImpl* storage) {
  Table& table = ForeignTable();
  std::lock_guard<std::mutex> lock(table.mutex);
  auto found = table.rows.find(storage);
  if (found != table.rows.end()) {
    // Memory of a device is taken anew when a storage is resized; the header may be in use, so the
    // object stays.
    BufferHeader& known = found->second.header->buffer;
    if (known.device != 0 && known.data != storage->data_ptr().get()) {
      Ended(tape, known);
      ForgetAddress(table, found->second);
      BornOnDevice(tape, table, *found);
    }
    return found->second.header;
  }
  if (table.rows.size() >= table.sweep_at) {
    for (auto row = table.rows.begin(); row != table.rows.end();) {
      if (!row->second.storage.expired()) {
        ++row;
        continue;
      }
      Ended(tape, row->second.header->buffer);
      ForgetAddress(table, row->second);
      GiveBack(table, row->second.header);
      row = table.rows.erase(row);
    }
    table.sweep_at = std::max<size_t>(64, 2 * table.rows.size());
  }
  ForeignHeader* header = NewHeader(table);
  new (&header->buffer) BufferHeader{};
  auto strong =
      c10::intrusive_ptr<c10::StorageImpl>::reclaim_copy(const_cast<c10::StorageImpl*>(storage));
  Row& row = *table.rows
                  .emplace(storage, Foreign{c10::weak_intrusive_ptr<c10::StorageImpl>(strong),
                                            header, table.by_address.end()})
                  .first;
  if (DeviceOf(storage->data_ptr().device()) == 0) {
    Born(tape, storage, header->buffer);
  } else {
    BornOnDevice(tape, table, row);
  }
  header->owner.store(storage, std::memory_order_release);
  return header;
}

}  // namespace

BufferHeader* AdoptForeign(const c10::StorageImpl* storage) {
  agent::Tape* tape = agent::CurrentTape();
  if (tape == nullptr) return nullptr;
  ThreadState* state = t_state;
  if (__builtin_expect(state == nullptr || state->tape != tape, 0)) {
    return &FindOrAdopt(tape, storage)->buffer;
  }
  // The storage is in use, so a header that it owns stays its own.
  ForeignHeader*& known = state->KnownForeign(storage);
  if (known != nullptr && known->owner.load(std::memory_order_acquire) == storage &&
      known->buffer.data == storage->data_ptr().get()) {
    return &known->buffer;
  }
  known = FindOrAdopt(tape, storage);
  return &known->buffer;
}

}  // namespace acltape::torch_plugin
