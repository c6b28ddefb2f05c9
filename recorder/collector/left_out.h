// Rows of the ledger for what agents left out because the system refused them memory
// (Note [What the system refuses] in recorder/agent/memory.h).
#pragma once

#include "recorder/collector/trace_builder.h"
#include "recorder/wire/arena.h"

namespace acltape::collector {

void NoteLeftOut(const wire::ArenaHeader& arena, TraceBuilder& trace);

}  // namespace acltape::collector
