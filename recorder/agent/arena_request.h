// The asking side of Note [Asking for the arena] (recorder/wire/arena_request.h).
#pragma once

#include <cstdint>

namespace acltape::agent {

struct ArenaOffer {
  int fd = -1;       // of the arena, the caller closes it; -1 when nobody answered
  uint32_t pid = 0;  // by which the collector knows this process; 0 when it does not
};

// Asks the collector at `text`, which is "NAME:SECRET". Waits two seconds at most.
ArenaOffer AskForArena(const char* text);

// Tells the collector that this process is not recorded, because it could not map the arena.
void TellNotAttached(const char* text);

}  // namespace acltape::agent
