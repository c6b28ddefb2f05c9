// A recorder that allocates once more for each recorded call. This library is preloaded before the
// agent, so that the plug-in finds this PythonLine, which it calls once for each leaf.
#include <dlfcn.h>
#include <stdlib.h>

#include "recorder/agent/python_line.h"

namespace acltape::agent {

uint32_t PythonLine(Tape& tape, LockUse use) {
  using Function = uint32_t (*)(Tape&, LockUse);
  static const auto real = reinterpret_cast<Function>(
      dlsym(RTLD_NEXT, "_ZN7acltape5agent10PythonLineERNS0_4TapeENS0_7LockUseE"));
  void* volatile block = malloc(64);  // volatile: the compiler must not leave the pair out
  free(block);
  return real(tape, use);
}

}  // namespace acltape::agent
