// A recorder that allocates once more for each recorded call. This library is preloaded before the
// agent, so that the plug-in finds this PythonLine, which it calls once for each leaf.
#include <dlfcn.h>
#include <stdlib.h>

#include "recorder/agent/python_line.h"

namespace acltape::agent {

uint32_t PythonLine(Tape& tape, LockUse use, FrameUse frames) {
  using Function = uint32_t (*)(Tape&, LockUse, FrameUse);
  static const auto real = reinterpret_cast<Function>(
      dlsym(RTLD_NEXT, "_ZN7acltape5agent10PythonLineERNS0_4TapeENS0_7LockUseENS0_8FrameUseE"));
  void* volatile block = malloc(64);  // volatile: the compiler must not leave the pair out
  free(block);
  return real(tape, use, frames);
}

}  // namespace acltape::agent
