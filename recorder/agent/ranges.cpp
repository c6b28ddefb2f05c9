// Ranges that a program marks itself: recorder/ranges/acltape.h and the Python module call these.
#include "recorder/agent/tape.h"

using acltape::agent::CurrentTape;
using acltape::agent::Tape;
namespace wire = acltape::wire;

// A range whose begin was not recorded is not ended either: a thread may have no tape for a while.
extern "C" ACLTAPE_AGENT_API void acltape_agent_range_begin(const char* name) {
  Tape* tape = CurrentTape();
  if (tape == nullptr || name == nullptr || tape->arena->record_composites == 0) return;
  const wire::ScopeBeginRecord record{{wire::RecordKind::kScopeBegin, 0, 0},
                                      wire::Tick(),
                                      tape->arena->next_call_id.load(std::memory_order_relaxed),
                                      wire::ScopeKind::kUser,
                                      0};
  tape->WriteWithTexts(record, &name, 1);
  ++tape->own_ranges;
}

extern "C" ACLTAPE_AGENT_API void acltape_agent_range_end() {
  Tape* tape = CurrentTape();
  if (tape == nullptr || tape->own_ranges == 0) return;
  --tape->own_ranges;
  uint32_t total = 0;
  auto* record = tape->Begin<wire::ScopeEndRecord>(wire::RecordKind::kScopeEnd, 0, &total);
  if (record == nullptr) return;
  record->tick = wire::Tick();
  record->next_call_id = tape->arena->next_call_id.load(std::memory_order_relaxed);
  tape->End(total);
}
