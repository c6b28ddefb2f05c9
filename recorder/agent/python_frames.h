// The Python frames of a thread, read from the interpreter's memory.
//
// The frames of a thread are changed by that thread alone, so it can read its own without the
// interpreter's lock. That matters because a framework gives the lock back before it runs an
// operator: to take it again for each operator would cost more than all the rest of recording.
//
// The layouts of CPython 3.9 to 3.13 are a table. A layout is used only after it gave the same
// frames and lines as the interpreter's public functions (VerifyFrames). So an interpreter that was
// built in another way costs time, and never a wrong line or a crash.
#pragma once

#include <cstdint>

#include "recorder/agent/interpreter.h"

namespace acltape::agent {

// One frame of the calling thread.
struct RawFrame {
  const char* address = nullptr;  // the frame itself; null: there is none
  const void* code = nullptr;  // its code object, or what stands for one in the interpreter's own
  uint64_t instruction = 0;    // tells the instructions of one code object apart
};

// True once VerifyFrames has found a layout that fits.
bool CanReadFrames();

// Compares the layout for this interpreter with its public functions, at the first call that finds
// a frame. With ACLTAPE_PYTHON_LAYOUT=none in the environment no layout fits; tests set it. The
// caller holds the interpreter's lock; `state` is its own.
void VerifyFrames(const Interpreter& py, ThreadState* state);

// The innermost frame of the thread, and the frame that called another one. Only after
// CanReadFrames.
RawFrame InnermostFrame(const ThreadState* state);
RawFrame CallerOf(const RawFrame& frame);

// The line of source that the frame executes; below 1: none. Needs no lock: it reads tables of the
// code object that never change. `frame.code` is a code object.
int LineOf(const Interpreter& py, const RawFrame& frame);

}  // namespace acltape::agent
