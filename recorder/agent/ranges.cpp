#include "recorder/agent/ranges.h"

#include <stdlib.h>
#include <string.h>

#include "recorder/agent/memory.h"
#include "recorder/agent/window.h"
#include "recorder/wire/step_name.h"

namespace acltape::agent {

namespace {

bool InStep(const Tape& tape) {
  for (uint32_t i = 0; i < tape.range_count; ++i) {
    if (tape.ranges[i].is_step) return true;
  }
  return false;
}

// Room for one more range; false without memory.
bool ReserveRange(Tape& tape) {
  if (tape.range_count < tape.range_capacity) return true;
  const uint32_t capacity = tape.range_capacity == 0 ? 16 : 2 * tape.range_capacity;
  void* larger =
      Resize(static_cast<void*>(tape.ranges), capacity * sizeof(OpenRange), wire::LeftOut::kRanges);
  if (larger == nullptr) return false;
  tape.ranges = static_cast<OpenRange*>(larger);
  tape.range_capacity = capacity;
  return true;
}

}  // namespace

void WriteOpenRanges(Tape& tape) {
  for (uint32_t i = 0; i < tape.range_count; ++i) {
    OpenRange& range = tape.ranges[i];
    if (range.told) continue;
    range.told = true;
    tape.WriteScopeBegin(range.name != nullptr ? range.name : "?", range.kind);
  }
}

void BeginRange(Tape& tape, const char* name, wire::ScopeKind kind) {
  if (!ReserveRange(tape)) return;
  OpenRange range{CopyText(name, wire::LeftOut::kRanges), 0, kind, false, false, false};
  range.is_optimizer = std::string_view(name).starts_with(wire::kOptimizerStep);
  range.is_step = kind == wire::ScopeKind::kUser && !InStep(tape) &&
                  wire::IsStepName(tape.arena->step_name, name);
  if (range.is_step) range.step = StepBegins(tape);
  if (range.is_optimizer) ++tape.optimizer_depth;
  tape.ranges[tape.range_count++] = range;
  if (IsOpen(tape)) WriteOpenRanges(tape);
}

void EndRange(Tape& tape) {
  if (tape.range_count == 0) return;
  const OpenRange range = tape.ranges[--tape.range_count];
  free(range.name);
  if (range.told) tape.WriteScopeEnd();
  if (range.is_step) StepEnded(tape, range.step);
  if (range.is_optimizer && --tape.optimizer_depth == 0) OptimizerEnded(tape);
}

void FreeRanges(Tape& tape) {
  for (uint32_t i = 0; i < tape.range_count; ++i) free(tape.ranges[i].name);
  free(tape.ranges);
}

}  // namespace acltape::agent

using acltape::agent::CurrentTape;
using acltape::agent::Tape;

// recorder/ranges/acltape.h and the Python module call these. If the start of a range was not
// recorded, its end is not recorded either: a thread may have no tape for a while.
extern "C" ACLTAPE_AGENT_API void acltape_agent_range_begin(const char* name) {
  Tape* tape = CurrentTape();
  if (tape == nullptr || name == nullptr || tape->arena->record_composites == 0) return;
  acltape::agent::BeginRange(*tape, name, acltape::wire::ScopeKind::kUser);
  ++tape->own_ranges;
}

extern "C" ACLTAPE_AGENT_API void acltape_agent_range_end() {
  Tape* tape = CurrentTape();
  if (tape == nullptr || tape->own_ranges == 0) return;
  --tape->own_ranges;
  acltape::agent::EndRange(*tape);
}
