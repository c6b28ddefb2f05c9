// Records the content of a tensor by the real agent, for a test program without a real tensor.
#pragma once

#include <xxhash.h>

#include <cstring>
#include <string>

#include "recorder/agent/tape.h"
#include "tests/recorder/producer.h"

namespace acltape::test {

// Sends `bytes` bytes, half of them random and half equal, as what a call left in a new buffer.
inline void RecordContent(uint64_t call_id, size_t bytes, unsigned seed) {
  agent::Tape* tape = agent::CurrentTape();
  if (tape == nullptr || call_id == 0) return;
  std::string content(bytes, 'x');
  uint32_t state = seed * 2654435761u + 1;
  for (size_t i = 0; i < bytes / 2; ++i) {
    state = state * 1664525u + 1013904223u;
    content[i] = static_cast<char>(state >> 24);
  }
  const XXH128_hash_t digest = XXH3_128bits(content.data(), content.size());
  const auto write = [tape](wire::RecordKind kind, auto fixed, const std::string& rest) {
    uint32_t total = 0;
    auto* record = tape->Begin<decltype(fixed)>(kind, rest.size(), &total);
    if (record == nullptr) return;
    fixed.header = record->header;
    memcpy(static_cast<void*>(record), &fixed, sizeof(fixed));
    memcpy(record + 1, rest.data(), rest.size());
    tape->End(total);
  };
  wire::BufferBirthRecord birth{};
  birth.buffer_id = tape->NextBufferId();
  birth.address = 0x7f0000000000 + birth.buffer_id * 64;
  birth.bytes = bytes;
  birth.tick = wire::Tick();
  write(wire::RecordKind::kBufferBirth, birth, "");
  write(wire::RecordKind::kData, wire::DataRecord{{}, digest.low64, digest.high64, bytes, 0, bytes},
        content);
  wire::SnapshotRecord snapshot{};
  const std::string layout = Signature().Tensor(0, {static_cast<int64_t>(bytes)}, 0).bytes;
  snapshot.call_id = call_id;
  snapshot.buffer_id = birth.buffer_id;
  snapshot.digest_low = digest.low64;
  snapshot.digest_high = digest.high64;
  snapshot.bytes = bytes;
  snapshot.position = -1;
  snapshot.moment = 1;
  snapshot.flags = wire::kSnapshotPayload;
  snapshot.layout_bytes = static_cast<uint32_t>(layout.size());
  write(wire::RecordKind::kSnapshot, snapshot, layout);
}

}  // namespace acltape::test
