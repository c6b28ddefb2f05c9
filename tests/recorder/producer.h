// A reference producer: writes records into an arena as the agent does, over recorder/wire alone.
// Used in the test process and in recorded_program.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <string>
#include <vector>

#include "recorder/wire/arena.h"
#include "recorder/wire/clock.h"
#include "recorder/wire/records.h"
#include "recorder/wire/ring.h"

namespace acltape::test {

// A mapped arena.
struct Arena {
  static Arena Open(int fd) {
    Arena arena;
    arena.fd = fd;
    arena.header = static_cast<wire::ArenaHeader*>(
        mmap(nullptr, wire::kPage, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    arena.slots =
        static_cast<std::byte*>(mmap(nullptr, wire::kPage * arena.header->slot_count,
                                     PROT_READ | PROT_WRITE, MAP_SHARED, fd, wire::kPage));
    arena.header->attached_processes.fetch_add(1);
    return arena;
  }
  // From the environment, as the agent finds it.
  static Arena OpenFromEnvironment() {
    const char* path = getenv(wire::kArenaVariable);
    return Open(path == nullptr ? -1 : open(path, O_RDWR | O_CLOEXEC));
  }
  wire::Slot* slot(uint32_t index) const {
    return reinterpret_cast<wire::Slot*>(slots + wire::kPage * index);
  }

  int fd = -1;
  wire::ArenaHeader* header = nullptr;
  std::byte* slots = nullptr;
};

// Appends signature bytes (ArgumentTag) to a string.
class Signature {
 public:
  Signature& Tensor(uint16_t slot, std::vector<int64_t> shape, uint8_t dtype = 6) {
    Put(wire::ArgumentTag::kTensor);
    Put(dtype);
    Put(static_cast<uint8_t>(shape.size()));
    Put(uint8_t{0});
    Put(slot);
    Put(int64_t{0});
    for (const int64_t size : shape) Put(size);
    int64_t stride = 1;
    std::vector<int64_t> strides(shape.size());
    for (size_t d = shape.size(); d-- > 0;) {
      strides[d] = stride;
      stride *= shape[d];
    }
    for (const int64_t value : strides) Put(value);
    return *this;
  }
  Signature& Int(int64_t value) {
    Put(wire::ArgumentTag::kInt);
    Put(value);
    return *this;
  }
  Signature& Real(double value) {
    Put(wire::ArgumentTag::kReal);
    Put(value);
    return *this;
  }
  template <typename T>
  Signature& Put(T value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
    return *this;
  }
  std::string bytes;
};

class Producer {
 public:
  explicit Producer(const Arena& arena) : arena_(arena) {
    for (uint32_t index = 0; index < arena.header->slot_count; ++index) {
      auto expected = wire::SlotState::kFree;
      wire::Slot* slot = arena.slot(index);
      if (!slot->state.compare_exchange_strong(expected, wire::SlotState::kClaimed)) continue;
      slot->pid = static_cast<uint32_t>(getpid());
      slot->tid = static_cast<uint32_t>(syscall(SYS_gettid));
      slot->generation++;
      base_ = wire::MapRing(arena.fd, *arena.header, index);
      ring_ = wire::RingProducer(slot, base_, arena.header->ring_bytes);
      return;
    }
    arena.header->threads_without_slot.fetch_add(1);
  }
  ~Producer() {
    if (base_ != nullptr) Close();
  }
  Producer(const Producer&) = delete;
  Producer& operator=(const Producer&) = delete;

  bool claimed() const { return base_ != nullptr; }
  wire::Slot* slot() { return ring_.slot(); }
  wire::ArenaHeader& header() { return *arena_.header; }

  void Close() {
    wire::Slot* slot = ring_.slot();
    wire::UnmapRing(base_, *arena_.header);
    base_ = nullptr;
    slot->state.store(wire::SlotState::kClosing, std::memory_order_release);
  }
  // Forgets the slot, as a child does after fork, because the slot is the parent's.
  void Forget() { base_ = nullptr; }

  void Raw(const void* data, size_t bytes) {
    std::byte* room = ring_.Reserve(bytes, true);
    if (room == nullptr) {
      const uint64_t begin = wire::MonotonicNs();
      const timespec pause{0, 20000};
      while ((room = ring_.Reserve(bytes, true)) == nullptr) nanosleep(&pause, nullptr);
      ring_.slot()->stalled_ns.fetch_add(wire::MonotonicNs() - begin);
    }
    memcpy(room, data, bytes);
    ring_.Commit(bytes);
  }
  template <typename R>
  void Write(wire::RecordKind kind, R record, const std::string& rest = "") {
    const uint32_t total = wire::RoundUp8(sizeof(R) + rest.size());
    record.header = {kind, 0, total};
    buffer_.assign(total, '\0');
    memcpy(buffer_.data(), &record, sizeof(R));
    memcpy(buffer_.data() + sizeof(R), rest.data(), rest.size());
    Raw(buffer_.data(), total);
  }
  static std::string Texts(std::initializer_list<std::string> texts) {
    std::string all;
    for (const std::string& text : texts) all += text + '\0';
    return all;
  }

  void Op(uint32_t index, const std::string& name, const std::string& overload,
          const std::string& schema, uint32_t dialect = 0) {
    wire::OpRecord record{};
    record.op_index = index;
    record.dialect = dialect;
    Write(wire::RecordKind::kOp, record, Texts({name, overload, schema}));
  }
  uint64_t Birth(uint64_t bytes, uint64_t call_id = 0) {
    wire::BufferBirthRecord record{};
    record.buffer_id = arena_.header->next_buffer_id.fetch_add(1);
    record.address = 0x7f0000000000 + record.buffer_id * 64;
    record.bytes = bytes;
    record.tick = wire::Tick();
    record.call_id = call_id;
    Write(wire::RecordKind::kBufferBirth, record);
    return record.buffer_id;
  }
  void Death(uint64_t buffer_id, uint64_t call_id = 0) {
    wire::BufferDeathRecord record{};
    record.buffer_id = buffer_id;
    record.tick = wire::Tick();
    record.call_id = call_id;
    Write(wire::RecordKind::kBufferDeath, record);
  }
  uint64_t NextCallId() { return arena_.header->next_call_id.fetch_add(1); }
  void Call(uint64_t call_id, uint32_t op, const std::vector<uint64_t>& buffers,
            const std::string& signature, uint64_t parent = 0, int32_t status = 0,
            uint64_t begin_tick = wire::Tick()) {
    wire::CallRecord record{};
    record.call_id = call_id;
    record.parent_id = parent;
    record.begin_tick = begin_tick;
    record.end_tick = wire::Tick();
    record.op_index = op;
    record.signature_bytes = static_cast<uint32_t>(signature.size());
    record.slot_count = static_cast<uint16_t>(buffers.size());
    record.status = status;
    const std::string slots(reinterpret_cast<const char*>(buffers.data()), 8 * buffers.size());
    Write(wire::RecordKind::kCall, record, signature + slots);
    ring_.slot()->completed_calls.fetch_add(1, std::memory_order_relaxed);
  }
  uint64_t FrameBegin(uint32_t op, uint64_t parent = 0) {
    wire::FrameBeginRecord record{};
    record.call_id = NextCallId();
    record.parent_id = parent;
    record.tick = wire::Tick();
    record.op_index = op;
    Write(wire::RecordKind::kFrameBegin, record);
    return record.call_id;
  }
  void FrameEnd(uint64_t call_id) {
    Write(wire::RecordKind::kFrameEnd, wire::FrameEndRecord{{}, call_id, wire::Tick()});
  }
  void ScopeBegin(const std::string& name) {
    wire::ScopeBeginRecord record{};
    record.tick = wire::Tick();
    record.next_call_id = arena_.header->next_call_id.load();
    Write(wire::RecordKind::kScopeBegin, record, Texts({name}));
  }
  void ScopeEnd() {
    Write(wire::RecordKind::kScopeEnd,
          wire::ScopeEndRecord{{}, wire::Tick(), arena_.header->next_call_id.load()});
  }
  void Data(uint64_t low, uint64_t high, const std::string& content, size_t piece_bytes) {
    size_t offset = 0;
    do {
      const std::string piece = content.substr(offset, piece_bytes);
      wire::DataRecord record{{}, low, high, content.size(), offset, piece.size()};
      Write(wire::RecordKind::kData, record, piece);
      offset += piece.size();
    } while (offset < content.size());
  }
  void Snapshot(uint64_t call_id, uint64_t buffer_id, uint64_t low, uint64_t high, uint64_t bytes) {
    const std::string layout =
        Signature().Tensor(0, {static_cast<int64_t>(bytes)}, 0).bytes;  // uint8
    wire::SnapshotRecord record{};
    record.call_id = call_id;
    record.buffer_id = buffer_id;
    record.digest_low = low;
    record.digest_high = high;
    record.bytes = bytes;
    record.position = -1;
    record.flags = wire::kSnapshotPayload;
    record.layout_bytes = static_cast<uint32_t>(layout.size());
    Write(wire::RecordKind::kSnapshot, record, layout);
  }
  void Meta(const std::string& key, const std::string& value) {
    Write(wire::RecordKind::kMeta, wire::TextRecord{}, Texts({key, value}));
  }
  // Says that the recorder took a quarter of so many ticks of the thread.
  void TakeAQuarter(uint64_t ticks) {
    ring_.slot()->own_ticks.fetch_add(ticks / 4);
    ring_.slot()->counted_ticks.fetch_add(ticks);
    ring_.slot()->timed_hooks.fetch_add(1);
  }
  void ThreadName(const std::string& name) {
    Write(wire::RecordKind::kThreadName, wire::TextRecord{}, Texts({name}));
  }

  // A four-element add as the torch plug-in records it: birth of the result, the call, death of
  // the result before.
  static constexpr char kAddSchema[] =
      "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor";
  static std::string AddSignature() {
    return Signature().Tensor(0, {4}).Tensor(1, {4}).Int(1).Tensor(2, {4}).bytes;
  }

 private:
  Arena arena_;
  std::byte* base_ = nullptr;
  wire::RingProducer ring_;
  std::string buffer_;
};

}  // namespace acltape::test
