// The work of a keeper once its collector is dead: it empties the rings into the spool until the
// recorded program has ended (keeper.h).
#pragma once

#include <atomic>
#include <cstdint>

#include "recorder/collector/arena_owner.h"
#include "recorder/collector/arena_server.h"

namespace acltape::collector {

struct Takeover {
  ArenaOwner& arena;
  ArenaServer& server;
  int spool = -1;  // the descriptor of the spool's file
  uint32_t program_pid = 0;
  uint64_t program_start = 0;
  int64_t outlive_ms = 0;  // as in RecordOptions
};

// Returns when the program and the processes that it started have ended, when `asked_to_end` turns
// true, or when the disk takes no more. The spool is closed when every ring was emptied to its end.
// Throws std::bad_alloc.
void TakeOver(const Takeover& takeover, const std::atomic<bool>& asked_to_end);

}  // namespace acltape::collector
