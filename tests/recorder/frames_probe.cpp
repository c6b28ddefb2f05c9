// Asks python_frames.h the questions of frames_test.py, from inside of any interpreter.
#include <cstdio>

#include "recorder/agent/python_frames.h"

using namespace acltape::agent;

// The caller holds the interpreter's lock. 1: the layout of this interpreter is known and fits.
extern "C" __attribute__((visibility("default"))) int acltape_verify() {
  const Interpreter& py = TheInterpreter();
  if (!py.complete) return -1;
  VerifyFrames(py, py.this_thread());
  return CanReadFrames() ? 1 : 0;
}

// The caller does not hold the lock. Writes a line for each frame, the innermost first: address of
// the code, number of the line. The test knows which codes are functions: the others are the
// interpreter's own.
extern "C" __attribute__((visibility("default"))) int acltape_frames(const size_t* codes, int count,
                                                                     char* text, size_t bytes) {
  const Interpreter& py = TheInterpreter();
  if (!CanReadFrames() || py.has_lock() != 0) return -1;
  size_t used = 0;
  for (RawFrame frame = InnermostFrame(py.this_thread()); frame.address != nullptr;
       frame = CallerOf(frame)) {
    for (int i = 0; i < count; ++i) {
      if (codes[i] != reinterpret_cast<size_t>(frame.code)) continue;
      used += static_cast<size_t>(
          snprintf(text + used, bytes - used, "%zu %d\n", codes[i], LineOf(py, frame)));
      break;
    }
    if (used + 64 > bytes) return -1;
  }
  return static_cast<int>(used);
}
