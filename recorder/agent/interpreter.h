// The Python interpreter in the process, when there is one.
//
// It is looked up by name, CPython 3.9 and newer; nothing is linked, and a program without Python
// costs nothing.
#pragma once

namespace acltape::agent {

// Types of the interpreter's C interface, of which only addresses are used here.
struct Object;
struct ThreadState;

// The start symbol of a whole file, for Interpreter::run.
inline constexpr int kFileInput = 257;

// The functions of the interpreter that reading a line needs. All are part of its stable or public
// interface from 3.9 on.
struct Interpreter {
  int (*is_initialized)();
  int (*is_finalizing)();
  ThreadState* (*this_thread)();
  ThreadState* (*running)();  // the state that has the lock, or had it last; null: none
  int (*has_lock)();          // says yes to all once the program has made another interpreter
  int (*take_lock)();
  void (*give_lock)(int);
  Object* (*error_occurred)();
  Object* (*frame_of)(ThreadState*);
  Object* (*back_of)(Object*);
  Object* (*code_of)(Object*);
  int (*line_of)(Object*);
  int (*line_at)(Object*, int);  // returns the line of a code object at an offset in bytes
  long (*integer)(Object*);
  const char* (*version)();
  Object* (*attribute)(Object*, const char*);
  const char* (*text)(Object*);
  void (*clear_error)();
  void (*release)(Object*);
  // These are used for generated code alone, see generated_code.h.
  Object* (*builtins)();  // borrowed
  Object* (*new_dict)();
  Object* (*item)(Object*, const char*);  // borrowed
  int (*set_item)(Object*, const char*, Object*);
  Object* (*run)(const char*, int, Object*, Object*, void*);
  Object* (*call)(Object*, const char*, ...);
  bool complete;

  // True when the calling thread, whose state is given, has the lock.
  bool HasLock(const ThreadState* state) const { return state != nullptr && running() == state; }
  // True when nobody can tell whether the calling thread has the lock, perhaps by another
  // interpreter's state. To take it could then wait for ever.
  bool LockIsUnknown(const ThreadState* state) const {
    return running() != state && has_lock() != 0;
  }
};

// Looks for the interpreter once, at the first call. No program loads an interpreter later than
// that.
const Interpreter& TheInterpreter();

void ForgetInterpreterLock();

}  // namespace acltape::agent
