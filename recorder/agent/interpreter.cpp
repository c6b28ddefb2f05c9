#include "recorder/agent/interpreter.h"

#include <dlfcn.h>

#include <atomic>

#include "recorder/agent/lock.h"

namespace acltape::agent {

namespace {

Mutex g_mutex;

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
      (Resolve(py.running, "PyThreadState_GetUnchecked") ||  // since 3.13
       Resolve(py.running, "_PyThreadState_UncheckedGet")) &&
      Resolve(py.has_lock, "PyGILState_Check") && Resolve(py.take_lock, "PyGILState_Ensure") &&
      Resolve(py.give_lock, "PyGILState_Release") && Resolve(py.error_occurred, "PyErr_Occurred") &&
      Resolve(py.frame_of, "PyThreadState_GetFrame") && Resolve(py.back_of, "PyFrame_GetBack") &&
      Resolve(py.code_of, "PyFrame_GetCode") && Resolve(py.line_of, "PyFrame_GetLineNumber") &&
      Resolve(py.line_at, "PyCode_Addr2Line") && Resolve(py.integer, "PyLong_AsLong") &&
      Resolve(py.version, "Py_GetVersion") && Resolve(py.attribute, "PyObject_GetAttrString") &&
      Resolve(py.text, "PyUnicode_AsUTF8") && Resolve(py.clear_error, "PyErr_Clear") &&
      Resolve(py.release, "Py_DecRef") && Resolve(py.builtins, "PyEval_GetBuiltins") &&
      Resolve(py.new_dict, "PyDict_New") && Resolve(py.item, "PyDict_GetItemString") &&
      Resolve(py.set_item, "PyDict_SetItemString") && Resolve(py.run, "PyRun_StringFlags") &&
      Resolve(py.call, "PyObject_CallFunction");
  return py;
}

}  // namespace

const Interpreter& TheInterpreter() {
  static Interpreter interpreter;
  static std::atomic<bool> known{false};
  if (known.load(std::memory_order_acquire)) return interpreter;
  Lock lock(g_mutex);
  if (!known.load(std::memory_order_relaxed)) interpreter = FindInterpreter();
  known.store(true, std::memory_order_release);
  return interpreter;
}

void ForgetInterpreterLock() { g_mutex.Forget(); }

}  // namespace acltape::agent
