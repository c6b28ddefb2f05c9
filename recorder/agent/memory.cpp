#include "recorder/agent/memory.h"

#include "recorder/agent/process.h"

namespace acltape::agent {

void LeaveOut(wire::LeftOut what, uint64_t count) {
  wire::ArenaHeader* arena = ThisProcess().arena;
  if (arena != nullptr) arena->left_out[static_cast<size_t>(what)].fetch_add(count);
}

}  // namespace acltape::agent
