#include "recorder/acl/python_line.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include <atomic>

#include "recorder/acl/lock.h"
#include "recorder/acl/pointer_map.h"
#include "recorder/acl/thread.h"

namespace acltape::acl_agent {

namespace {

Mutex g_mutex;

// Types of the interpreter's C interface, of which only addresses are used here.
struct Object;
struct ThreadState;

// The functions of the interpreter that reading a line needs. All are part of its stable or public
// interface from 3.9 on.
struct Interpreter {
  int (*is_initialized)();
  int (*is_finalizing)();
  ThreadState* (*this_thread)();
  int (*has_lock)();
  int (*take_lock)();
  void (*give_lock)(int);
  Object* (*error_occurred)();
  Object* (*frame_of)(ThreadState*);
  Object* (*back_of)(Object*);
  Object* (*code_of)(Object*);
  int (*line_of)(Object*);
  Object* (*attribute)(Object*, const char*);
  const char* (*text)(Object*);
  void (*clear_error)();
  void (*release)(Object*);
  bool complete;
};

template <typename Function>
bool Resolve(Function& function, const char* name) {
  function = reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
  return function != nullptr;
}

Interpreter FindInterpreter() {
  Interpreter py{};
  if (!Resolve(py.is_initialized, "Py_IsInitialized")) return py;
  py.complete =
      (Resolve(py.is_finalizing, "Py_IsFinalizing") ||  // since 3.13
       Resolve(py.is_finalizing, "_Py_IsFinalizing")) &&
      Resolve(py.this_thread, "PyGILState_GetThisThreadState") &&
      Resolve(py.has_lock, "PyGILState_Check") && Resolve(py.take_lock, "PyGILState_Ensure") &&
      Resolve(py.give_lock, "PyGILState_Release") && Resolve(py.error_occurred, "PyErr_Occurred") &&
      Resolve(py.frame_of, "PyThreadState_GetFrame") && Resolve(py.back_of, "PyFrame_GetBack") &&
      Resolve(py.code_of, "PyFrame_GetCode") && Resolve(py.line_of, "PyFrame_GetLineNumber") &&
      Resolve(py.attribute, "PyObject_GetAttrString") && Resolve(py.text, "PyUnicode_AsUTF8") &&
      Resolve(py.clear_error, "PyErr_Clear") && Resolve(py.release, "Py_DecRef");
  return py;
}

// Looked for once, at the first call: no program loads an interpreter behind it.
const Interpreter& TheInterpreter() {
  static Interpreter interpreter;
  static std::atomic<bool> known{false};
  if (known.load(std::memory_order_acquire)) return interpreter;
  Lock lock(g_mutex);
  if (!known.load(std::memory_order_relaxed)) interpreter = FindInterpreter();
  known.store(true, std::memory_order_release);
  return interpreter;
}

// Code whose frames are passed over: the framework's, and what it generates.
constexpr const char* kNotTheUsers[] = {
    "-packages/torch/",
    "-packages/torch_npu/",
    "-packages/torchair/",
    "-packages/npugraph_ex/",
    "/torch_npu/dynamo/",
    "<eval_with_key>",
    "<frozen ",
    "/torchinductor_",
};

struct Line {
  int32_t number;
  uint32_t place_id;
};

// A code object that was met. The reference is kept, so that its address stays its own.
struct Code {
  bool users;
  char* file;
  char* function;
  Line* lines;
  uint32_t line_count;
  uint32_t line_capacity;
};

PointerMap<Code*> g_codes;

char* TextOf(const Interpreter& py, Object* object, const char* name) {
  Object* value = py.attribute(object, name);
  if (value == nullptr) {
    py.clear_error();
    return nullptr;
  }
  const char* text = py.text(value);
  char* copy = text != nullptr ? strdup(text) : nullptr;
  if (text == nullptr) py.clear_error();
  py.release(value);
  return copy;
}

bool IsTheUsers(const char* file) {
  for (const char* part : kNotTheUsers) {
    if (strstr(file, part) != nullptr) return false;
  }
  return true;
}

// The code object's entry; takes over the reference to `code` or gives it back. Null: unknown.
Code* CodeOf(const Interpreter& py, Object* code) {
  Code* known = nullptr;
  if (g_codes.Get(code, &known)) {
    py.release(code);
    return known;
  }
  // Asking for an attribute would lose an error that the program has yet to meet.
  auto* made =
      py.error_occurred() == nullptr ? static_cast<Code*>(calloc(1, sizeof(Code))) : nullptr;
  if (made == nullptr) {
    py.release(code);
    return nullptr;
  }
  made->file = TextOf(py, code, "co_filename");
  made->function = TextOf(py, code, "co_qualname");  // since 3.11
  if (made->function == nullptr) made->function = TextOf(py, code, "co_name");
  made->users = made->file != nullptr && made->function != nullptr && IsTheUsers(made->file);
  g_codes.Put(code, made);
  return made;
}

void Announce(agent::Tape& tape, const Code& code, const Line& line) {
  const char* texts[] = {code.file, code.function};
  tape.WriteWithTexts(
      wire::PlaceRecord{{wire::RecordKind::kPlace, 0, 0}, line.place_id, line.number}, texts, 2);
}

uint32_t PlaceOf(Thread& thread, Code& code, int32_t number) {
  for (uint32_t i = 0; i < code.line_count; ++i) {
    if (code.lines[i].number == number) return code.lines[i].place_id;
  }
  if (code.line_count == code.line_capacity) {
    const uint32_t capacity = code.line_capacity == 0 ? 4 : 2 * code.line_capacity;
    void* larger = realloc(code.lines, capacity * sizeof(Line));
    if (larger == nullptr) return 0;
    code.lines = static_cast<Line*>(larger);
    code.line_capacity = capacity;
  }
  const Line line{number, thread.tape->NextHandleId()};
  code.lines[code.line_count++] = line;
  Announce(*thread.tape, code, line);
  return line.place_id;
}

// With the interpreter's lock held.
uint32_t InnermostLine(Thread& thread, const Interpreter& py, ThreadState* state) {
  constexpr int kMaxDepth = 256;
  Object* frame = py.frame_of(state);
  uint32_t place_id = 0;
  for (int depth = 0; frame != nullptr && depth < kMaxDepth; ++depth) {
    Object* object = py.code_of(frame);
    Lock lock(g_mutex);
    Code* code = object != nullptr ? CodeOf(py, object) : nullptr;
    if (code != nullptr && code->users) {
      place_id = PlaceOf(thread, *code, py.line_of(frame));
      break;
    }
    Object* outer = py.back_of(frame);
    py.release(frame);
    frame = outer;
  }
  if (frame != nullptr) py.release(frame);
  return place_id;
}

}  // namespace

uint32_t PythonLine(Thread& thread, LockUse use) {
  const Interpreter& py = TheInterpreter();
  if (!py.complete || py.is_initialized() == 0 || py.is_finalizing() != 0) return 0;
  ThreadState* state = py.this_thread();
  if (state == nullptr) return 0;
  if (py.has_lock() != 0) return InnermostLine(thread, py, state);
  if (use == LockUse::kIfHeld) return 0;
  const int before = py.take_lock();
  const uint32_t place_id = InnermostLine(thread, py, state);
  py.give_lock(before);
  return place_id;
}

void ForgetPythonLocks() {
  g_mutex.Forget();
  g_codes.ForgetLocks();
}

}  // namespace acltape::acl_agent
