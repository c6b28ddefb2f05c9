// A call that a test program records by the real agent, without a real operator.
#pragma once

#include <cstring>
#include <string>

#include "recorder/agent/tape.h"
#include "tests/recorder/producer.h"

namespace acltape::test {

// One add in the calling thread, written by the agent's own tape. Returns the id of the call, 0
// when it is not recorded.
inline uint64_t RecordOneCall() {
  agent::Tape* tape = agent::CurrentTape();
  if (tape == nullptr) return 0;
  // Said once in a thread, as the agent does it. A process that was forked has another tape.
  static thread_local const agent::Tape* told = nullptr;
  static thread_local uint32_t op = 0;
  if (told != tape) {
    const char* texts[] = {"aten::add", "Tensor", Producer::kAddSchema};
    op = tape->next_op++;
    tape->WriteWithTexts(wire::OpRecord{{wire::RecordKind::kOp, 0, 0}, op, 0}, texts, 3);
    told = tape;
  }
  const std::string signature = Producer::AddSignature();
  const uint64_t slots[] = {0, 0, 0};
  uint32_t bytes = 0;
  auto* record = tape->Begin<wire::CallRecord>(wire::RecordKind::kCall,
                                               signature.size() + sizeof(slots), &bytes);
  if (record == nullptr) {
    tape->CountCall();
    return 0;
  }
  const wire::RecordHeader header = record->header;
  memset(static_cast<void*>(record), 0, bytes);
  record->header = header;
  const uint64_t call_id = tape->NextCallId();
  record->call_id = call_id;
  record->begin_tick = record->end_tick = agent::Tick();
  record->op_index = op;
  record->signature_bytes = static_cast<uint32_t>(signature.size());
  record->slot_count = 3;
  auto* out = reinterpret_cast<char*>(record + 1);
  memcpy(out, signature.data(), signature.size());
  memcpy(out + signature.size(), slots, sizeof(slots));
  tape->End(bytes);
  tape->CountCall();
  return call_id;
}

}  // namespace acltape::test
