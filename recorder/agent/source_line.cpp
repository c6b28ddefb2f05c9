#include "recorder/agent/source_line.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <unistd.h>

#include "recorder/agent/interpreter.h"
#include "recorder/agent/pointer_map.h"

namespace acltape::agent {

namespace {

PointerMap<uint32_t> g_places;  // by return address

bool RunsPython() {
  const Interpreter& py = TheInterpreter();
  return py.complete && py.is_initialized() != 0;
}

uint32_t Announce(Tape& tape, const char* address_in_call) {
  Dl_info info;
  link_map* object = nullptr;
  if (dladdr1(address_in_call, &info, reinterpret_cast<void**>(&object), RTLD_DL_LINKMAP) == 0 ||
      object == nullptr) {
    return 0;
  }
  char program[4096];
  const char* file = object->l_name;
  if (file == nullptr || *file == '\0') {  // the program itself
    const ssize_t bytes = readlink("/proc/self/exe", program, sizeof(program) - 1);
    if (bytes <= 0) return 0;
    program[bytes] = '\0';
    file = program;
  }
  char address[32];
  snprintf(address, sizeof(address), "%lx",
           reinterpret_cast<unsigned long>(address_in_call) - object->l_addr);
  const char* texts[] = {file, address};
  const uint32_t place_id = tape.NextHandleId();
  tape.WriteWithTexts(wire::PlaceRecord{{wire::RecordKind::kPlace, 0, 0},
                                        place_id,
                                        0,
                                        0,
                                        wire::kPlaceUsers | wire::kPlaceAddress},
                      texts, 2);
  return place_id;
}

}  // namespace

uint32_t SourceLine(Tape& tape, LockUse use, const void* caller) {
  if (tape.arena->stacks == wire::StackPolicy::kNone) return 0;
  if (RunsPython()) return PythonLine(tape, use);
  uint32_t place_id = 0;
  if (g_places.Get(caller, &place_id)) return place_id;
  // The return address lies behind the call, which may be the last instruction of its line.
  place_id = Announce(tape, static_cast<const char*>(caller) - 1);
  g_places.Put(caller, place_id);
  return place_id;
}

void ForgetSourceLocks() {
  ForgetPythonLocks();
  g_places.ForgetLocks();
}

}  // namespace acltape::agent
