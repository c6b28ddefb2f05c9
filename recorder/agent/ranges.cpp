// Ranges that a program marks itself: recorder/ranges/acltape.h and the Python module call these.
#include "recorder/agent/tape.h"

using acltape::agent::CurrentTape;
using acltape::agent::Tape;
namespace wire = acltape::wire;

// A range whose begin was not recorded is not ended either: a thread may have no tape for a while.
extern "C" ACLTAPE_AGENT_API void acltape_agent_range_begin(const char* name) {
  Tape* tape = CurrentTape();
  if (tape == nullptr || name == nullptr || tape->arena->record_composites == 0) return;
  tape->WriteScopeBegin(name, wire::ScopeKind::kUser);
  ++tape->own_ranges;
}

extern "C" ACLTAPE_AGENT_API void acltape_agent_range_end() {
  Tape* tape = CurrentTape();
  if (tape == nullptr || tape->own_ranges == 0) return;
  --tape->own_ranges;
  tape->WriteScopeEnd();
}
