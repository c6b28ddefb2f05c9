#include "recorder/acl/values.h"

#include <stdlib.h>
#include <string.h>

#include <atomic>

#include "acl/acl.h"
#include "recorder/acl/handles.h"
#include "recorder/acl/memory.h"
#include "recorder/acl/model_parts.h"
#include "recorder/acl/pending.h"
#include "recorder/acl/real.h"
#include "recorder/acl/tensor_bytes.h"
#include "recorder/acl/thread.h"
#include "recorder/agent/digest.h"
#include "recorder/agent/lock.h"
#include "recorder/agent/memory.h"
#include "recorder/agent/pointer_map.h"
#include "recorder/agent/statistics.h"
#include "recorder/agent/window.h"

namespace acltape::acl_agent {

namespace {

using wire::PayloadPolicy;

struct Sent {
  uint64_t high;  // half of the digest
  uint32_t epoch;
};
agent::PointerMap<Sent> g_sent;  // digests whose bytes were sent, by their low half

PayloadPolicy Policy(const Thread& thread) { return thread.tape->arena->payload; }

bool FirstTime(const agent::Tape& tape, const agent::Digest& digest) {
  const auto* key = reinterpret_cast<const void*>(digest.low | 1);
  const uint32_t epoch = agent::SentEpoch(tape);
  Sent sent{};
  if (g_sent.Get(key, &sent) && sent.high == digest.high && sent.epoch >= epoch) return false;
  g_sent.Put(key, {digest.high, epoch});
  return true;
}

void SendData(agent::Tape* tape, const agent::Digest& digest, const void* data, size_t bytes) {
  const size_t piece = agent::PieceBytes(*tape->arena);
  size_t offset = 0;
  do {
    const size_t size = bytes - offset < piece ? bytes - offset : piece;
    uint32_t total = 0;
    auto* record = tape->Begin<wire::DataRecord>(wire::RecordKind::kData, size, &total);
    if (record == nullptr) return;
    record->digest_low = digest.low;
    record->digest_high = digest.high;
    record->total_bytes = bytes;
    record->offset = offset;
    record->piece_bytes = size;
    memcpy(record + 1, static_cast<const char*>(data) + offset, size);
    tape->End(total);
    offset += size;
  } while (offset < bytes);
}

// The ranges that a capture's calls read and write.
struct CapturedRange {
  uint64_t buffer_id;
  uint64_t base;
  uint64_t first;
  uint64_t end;
  CapturedUse use;
};
struct CapturedRanges {
  CapturedRange* ranges;
  uint32_t count;
  uint32_t capacity;
  uint32_t uses[3];   // ranges of each CapturedUse
  uint32_t revision;  // changes with the ranges
  // MemoryGeneration() when all that the graph reads on the device was known, and all that it
  // writes was marked as known.
  uint64_t settled;
};
agent::Mutex g_captured_mutex;
agent::PointerMap<CapturedRanges> g_captured;

const void* KeyOf(uint64_t model_id) { return reinterpret_cast<const void*>(model_id << 4); }

// True when the block at this address is still the one in which the range was seen.
bool StillThere(const CapturedRange& range) {
  Block block;
  return FindBlock(range.base + range.first, &block) && block.buffer_id == range.buffer_id;
}

// The end of a range, cut to the block that it lies in: a tensor may claim more than there is.
uint64_t EndInside(uint64_t base, uint64_t first, uint64_t end) {
  Block block;
  if (!FindBlock(base + first, &block)) return first;
  const uint64_t room = block.begin + block.bytes - base;
  return end < room ? end : room;
}

template <typename Action>
void ForEachRange(uint64_t model_id, CapturedUse use, const Action& action) {
  CapturedRanges captured{};
  for (uint32_t i = 0;; ++i) {
    CapturedRange range{};
    {
      agent::Lock lock(g_captured_mutex);
      if (!g_captured.Get(KeyOf(model_id), &captured) || i >= captured.count) return;
      if (captured.uses[static_cast<int>(use)] == 0) return;
      range = captured.ranges[i];
    }
    if (range.use == use && StillThere(range)) action(range);
  }
}

// The ranges that are noted of a graph; zeros where there are none.
CapturedRanges CapturedOf(uint64_t model_id) {
  CapturedRanges captured{};
  g_captured.Get(KeyOf(model_id), &captured);
  return captured;
}

// True when the execution of a graph makes nothing known that was not known before.
bool IsSettled(const CapturedRanges& captured) { return captured.settled == MemoryGeneration(); }

// Notes that an execution's writes, those of `revision`, were marked at `generation` of the memory,
// unless something that the graph reads is not known.
void Settle(const Thread& thread, uint64_t model_id, uint32_t revision, uint64_t generation) {
  bool known = true;
  if (WantsInputs(thread)) {
    ForEachRange(model_id, CapturedUse::kDeviceRead, [&](const CapturedRange& range) {
      const uint64_t end = EndInside(range.base, range.first, range.end);
      known = known && IsKnown(range.buffer_id, range.first, end);
    });
  }
  if (!known) return;
  g_captured.Change(KeyOf(model_id), [&](CapturedRanges& captured) {
    if (captured.revision == revision) captured.settled = generation;
  });
}

}  // namespace

bool WantsInputs(const Thread& thread) { return Policy(thread) >= PayloadPolicy::kInputs; }
bool WantsOutputs(const Thread& thread) {
  return Policy(thread) == PayloadPolicy::kDigest || Policy(thread) == PayloadPolicy::kAll;
}
bool WantsAnything(const Thread& thread) { return Policy(thread) != PayloadPolicy::kNone; }

namespace {

// Ranges of bytes have no numbers to sum up.
bool SummariseContent(const Content& content, const void* data, wire::DType dtype,
                      agent::Statistics* statistics) {
  if (content.position < 0 || content.plain_bytes) return false;
  return agent::Summarise(data, content.bytes / ElementBytes(dtype), dtype, statistics);
}

}  // namespace

void RecordContent(Thread& thread, const Content& content, const void* data) {
  agent::Tape* tape = thread.tape;
  const agent::Digest digest = agent::DigestOf(data, content.bytes);
  const bool payload = Policy(thread) >= PayloadPolicy::kInputs;
  if (payload && FirstTime(*tape, digest)) SendData(tape, digest, data, content.bytes);
  RecordFirstUse(thread, content.buffer_id);
  agent::Statistics statistics;
  const auto dtype = static_cast<wire::DType>(content.encoding[1]);
  const bool summarised = content.after && SummariseContent(content, data, dtype, &statistics);
  uint32_t total = 0;
  auto* record = tape->Begin<wire::SnapshotRecord>(wire::RecordKind::kSnapshot,
                                                   content.encoding_bytes, &total);
  if (record == nullptr) return;
  const wire::RecordHeader header = record->header;
  memset(static_cast<void*>(record), 0, sizeof(*record));
  record->header = header;
  record->call_id = content.call_id;
  record->buffer_id = content.buffer_id;
  record->digest_low = digest.low;
  record->digest_high = digest.high;
  record->bytes = content.bytes;
  record->position = content.position;
  record->moment = content.after ? 1 : 0;
  record->flags = static_cast<uint8_t>((payload ? wire::kSnapshotPayload : 0) |
                                       (summarised ? wire::kSnapshotStatistics : 0));
  record->min = statistics.min;
  record->max = statistics.max;
  record->mean = statistics.mean;
  record->l2 = statistics.l2;
  record->nan_count = statistics.nan_count;
  record->inf_count = statistics.inf_count;
  record->packing = content.packing;
  record->layout_bytes = content.encoding_bytes;
  memcpy(record + 1, content.encoding, content.encoding_bytes);
  tape->End(total);
}

void KeepHost(Thread& thread, uint64_t call_id, int32_t position, bool after, uint64_t address,
              uint64_t bytes) {
  if (!(after ? WantsOutputs(thread) : WantsInputs(thread))) return;
  Block block;
  if (!FindBlock(address, &block)) block = Block{address, 0, 0, 0};
  Content content{};
  content.call_id = call_id;
  content.position = position;
  content.after = after;
  content.buffer_id = block.buffer_id;
  content.bytes = bytes;
  EncodeBytes(address - block.begin, bytes, &content);
  RecordContent(thread, content, reinterpret_cast<const void*>(address));
  if (block.buffer_id != 0) {
    MarkKnown(block.buffer_id, address - block.begin, address - block.begin + bytes);
  }
}

void KeepHostPlane(Thread& thread, uint64_t call_id, int32_t position, bool after, uint64_t address,
                   uint64_t pitch, uint64_t width, uint64_t height) {
  if (!(after ? WantsOutputs(thread) : WantsInputs(thread)) || width == 0 || height == 0) return;
  auto* packed = static_cast<char*>(agent::Allocate(width * height, wire::LeftOut::kContents));
  if (packed == nullptr) return;
  for (uint64_t row = 0; row < height; ++row) {
    memcpy(packed + row * width, reinterpret_cast<const char*>(address) + row * pitch, width);
  }
  Block block;
  if (!FindBlock(address, &block)) block = Block{address, 0, 0, 0};
  Content content{};
  content.call_id = call_id;
  content.position = position;
  content.after = after;
  content.buffer_id = block.buffer_id;
  content.bytes = width * height;
  content.packing = width == pitch || height == 1 ? 0 : 1;
  EncodePlane(address - block.begin, pitch, width, height, &content);
  RecordContent(thread, content, packed);
  free(packed);
}

void KeepUnknown(Thread& thread, uint64_t call_id, uint64_t stream, uint64_t buffer_id,
                 uint64_t base, uint64_t first, uint64_t end) {
  end = EndInside(base, first, end);
  if (IsKnown(buffer_id, first, end)) return;
  MarkKnown(buffer_id, first, end);
  Content content{};
  content.call_id = call_id;
  content.position = -1;
  content.buffer_id = buffer_id;
  content.bytes = end - first;
  EncodeBytes(first, end - first, &content);
  CopyAfterWork(thread, content, base + first, stream);
}

void KeepWritten(Thread& thread, uint64_t call_id, uint64_t stream, int32_t position,
                 uint64_t buffer_id, uint64_t base, uint64_t first, uint64_t end,
                 const std::byte* encoding, uint32_t encoding_bytes) {
  if (!WantsOutputs(thread)) return;
  KeepRandom(thread, call_id, stream, position, buffer_id, base, first, end, encoding,
             encoding_bytes);
}

void KeepRandom(Thread& thread, uint64_t call_id, uint64_t stream, int32_t position,
                uint64_t buffer_id, uint64_t base, uint64_t first, uint64_t end,
                const std::byte* encoding, uint32_t encoding_bytes) {
  const uint64_t inside = EndInside(base, first, end);
  if (first >= inside) return;
  if (inside < end) encoding = nullptr;
  end = inside;
  Content content{};
  content.call_id = call_id;
  content.position = position;
  content.after = true;
  content.buffer_id = buffer_id;
  content.bytes = end - first;
  if (encoding == nullptr || encoding_bytes > sizeof(content.encoding)) {
    EncodeBytes(first, end - first, &content);
  } else {
    memcpy(content.encoding, encoding, encoding_bytes);
    memset(content.encoding + 4, 0, sizeof(uint16_t));  // slot 0
    content.encoding_bytes = encoding_bytes;
  }
  CopyAfterWork(thread, content, base + first, stream);
}

void NoteCaptured(uint64_t model_id, uint64_t buffer_id, uint64_t base, uint64_t first,
                  uint64_t end, CapturedUse use) {
  if (first >= end) return;
  model_id = RootGraph(model_id);
  agent::Lock lock(g_captured_mutex);
  CapturedRanges captured{};
  g_captured.Get(KeyOf(model_id), &captured);
  for (uint32_t i = 0; i < captured.count; ++i) {
    CapturedRange& range = captured.ranges[i];
    if (range.buffer_id != buffer_id) continue;
    // Bytes that the graph itself wrote before are no input of the graph.
    if (use == CapturedUse::kDeviceRead && range.use == CapturedUse::kWrite &&
        range.first <= first && end <= range.end) {
      return;
    }
    if (range.use != use || first > range.end || end < range.first) continue;
    if (range.first <= first && end <= range.end) return;
    if (first < range.first) range.first = first;
    if (end > range.end) range.end = end;
    g_captured.Change(KeyOf(model_id), [](CapturedRanges& changed) {
      changed.settled = 0;
      changed.revision++;
    });
    return;
  }
  if (captured.count == captured.capacity) {
    const uint32_t capacity = captured.capacity == 0 ? 16 : 2 * captured.capacity;
    void* larger =
        agent::Resize(captured.ranges, capacity * sizeof(CapturedRange), wire::LeftOut::kContents);
    if (larger == nullptr) return;
    captured.ranges = static_cast<CapturedRange*>(larger);
    captured.capacity = capacity;
  }
  captured.ranges[captured.count++] = {buffer_id, base, first, end, use};
  captured.uses[static_cast<int>(use)]++;
  captured.settled = 0;
  captured.revision++;
  if (g_captured.Put(KeyOf(model_id), captured) == agent::PutResult::kNoMemory) {
    agent::LeaveOut(wire::LeftOut::kContents);
    free(captured.ranges);
  }
}

void KeepBeforeExecution(Thread& thread, uint64_t call_id, uint64_t model_id, uint64_t stream) {
  ForEachRange(model_id, CapturedUse::kHostRead, [&](const CapturedRange& range) {
    KeepHost(thread, call_id, -1, false, range.base + range.first, range.end - range.first);
  });
  if (IsSettled(CapturedOf(model_id))) return;
  ForEachRange(model_id, CapturedUse::kDeviceRead, [&](const CapturedRange& range) {
    KeepUnknown(thread, call_id, stream, range.buffer_id, range.base, range.first, range.end);
  });
}

void KeepAfterExecution(Thread& thread, uint64_t call_id, uint64_t model_id, uint64_t stream) {
  const CapturedRanges captured = CapturedOf(model_id);
  const bool settled = IsSettled(captured);
  if (settled && !WantsOutputs(thread)) return;
  const uint64_t generation = MemoryGeneration();
  ForEachRange(model_id, CapturedUse::kWrite, [&](const CapturedRange& range) {
    if (!settled) MarkKnown(range.buffer_id, range.first, range.end);
    KeepWritten(thread, call_id, stream, -1, range.buffer_id, range.base, range.first, range.end,
                nullptr, 0);
  });
  if (!settled) Settle(thread, model_id, captured.revision, generation);
}

void ForgetModel(uint64_t model_id) {
  agent::Lock lock(g_captured_mutex);
  CapturedRanges captured{};
  if (g_captured.Take(KeyOf(model_id), &captured)) free(captured.ranges);
}

void ForgetValueLocks() {
  g_sent.ForgetLocks();
  g_captured.ForgetLocks();
  g_captured_mutex.Forget();
  ForgetPendingLocks();
}

}  // namespace acltape::acl_agent
