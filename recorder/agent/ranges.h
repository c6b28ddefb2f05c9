// The ranges that are open on a thread. They are kept while recording is closed too, so that a
// window that opens inside of them has them; and they tell where steps begin and end.
#pragma once

#include "recorder/agent/tape.h"

namespace acltape::agent {

struct OpenRange {
  char* name;     // null: there was no memory for it
  uint64_t step;  // its number, when it is one
  wire::ScopeKind kind;
  bool told;  // its start is in the ring
  bool is_step;
  bool is_optimizer;
};

// A range of the program begins on the tape's thread, or its innermost one ends. The name is
// copied. An end without a start is ignored: the start may have been in another process.
ACLTAPE_AGENT_API void BeginRange(Tape& tape, const char* name, wire::ScopeKind kind);
ACLTAPE_AGENT_API void EndRange(Tape& tape);

// Writes the starts of open ranges that are not in the ring so far.
void WriteOpenRanges(Tape& tape);
void FreeRanges(Tape& tape);

}  // namespace acltape::agent
