// Rows of the ledger for what the arena's header counts: threads and processes that were not
// recorded, and what agents left out because the system refused them memory
// (Note [What the system refuses] in recorder/agent/memory.h).
#pragma once

#include "recorder/collector/trace_builder.h"
#include "recorder/wire/arena.h"

namespace acltape::collector {

void NoteLeftOut(const wire::ArenaHeader& arena, TraceBuilder& trace);

// The row for a process that still ran when the recording ended.
void NoteOutlived(TraceBuilder& trace);

}  // namespace acltape::collector
