#include "recorder/agent/source_line.h"

#include "recorder/agent/interpreter.h"
#include "recorder/agent/native_stack.h"
#include "recorder/agent/pointer_map.h"

namespace acltape::agent {

namespace {

PointerMap<uint32_t> g_places;  // by return address

bool RunsPython() {
  const Interpreter& py = TheInterpreter();
  return py.complete && py.is_initialized() != 0;
}

}  // namespace

uint32_t SourceLine(Tape& tape, LockUse use, const void* caller, FrameUse frames) {
  if (tape.arena->stacks == wire::StackPolicy::kNone) return 0;
  if (RunsPython()) return PythonLine(tape, use, frames);
  if (tape.arena->stacks == wire::StackPolicy::kFull) return NativeStack(tape, caller);
  uint32_t place_id = 0;
  if (g_places.Get(caller, &place_id)) return place_id;
  // The return address follows the call, which may be the last instruction of its line.
  place_id = AnnounceAddress(tape, static_cast<const char*>(caller) - 1, 0, wire::kPlaceUsers);
  g_places.Put(caller, place_id);
  return place_id;
}

void ForgetSourceLocks() {
  ForgetPythonLocks();
  g_places.ForgetLocks();
}

}  // namespace acltape::agent
