// Parts of the recorder that may throw, because there is no memory or because libtorch does.
//
// Note [Nothing is thrown into the program]. Hooks run inside the program's own operators. What
// they throw would come out of these operators, where the program does not expect it. So every part
// that allocates is run through Guarded; what it would have recorded is left out and counted
// (recorder/agent/memory.h). Thread-local objects of the plug-in lie in static storage and have no
// destructors: the system ends a process that has no memory for either.
#pragma once

#include <cxxabi.h>

#include "recorder/agent/memory.h"

namespace acltape::torch_plugin {

// False when the part ended with an exception; `what` is counted then. A thread that is being
// cancelled is let through.
template <typename Part>
__attribute__((always_inline)) inline bool Guarded(wire::LeftOut what, const Part& part) {
  try {
    part();
    return true;
  } catch (abi::__forced_unwind&) {
    throw;
  } catch (...) {
    agent::LeaveOut(what);
    return false;
  }
}

}  // namespace acltape::torch_plugin
