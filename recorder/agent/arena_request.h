// The asking side of Note [Asking for the arena] (recorder/wire/arena_request.h).
#pragma once

#include <cstdint>

namespace acltape::agent {

struct ArenaOffer {
  int fd = -1;       // descriptor of the arena, which the caller closes; -1 when nobody answered
  uint32_t pid = 0;  // by which the collector knows this process; 0 when it does not
};

// Asks the collector at `text`, which is "NAME:SECRET". Waits two seconds at most.
ArenaOffer AskForArena(const char* text);

// Sends the collector the notice that this process is not recorded, because it could not map the
// arena.
void SendNotAttached(const char* text);

}  // namespace acltape::agent
