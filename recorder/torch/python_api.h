// The interpreter that hosts the process, when there is one. The plug-in does not link it: a C++
// program has none, and a Python program has its own.
#pragma once

#include <dlfcn.h>
#include <sys/types.h>

#include "recorder/agent/interpreter.h"

namespace acltape::torch_plugin {

// nullptr when this process has no such function.
template <typename Function>
Function Python(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_DEFAULT, name));
}

struct PyObject;

using agent::kFileInput;

// The functions that are needed; all are part of Python's stable interface.
struct Interpreter {
  int (*is_initialized)() = Python<int (*)()>("Py_IsInitialized");
  // Its name until Python 3.13 has an underscore.
  int (*is_finalizing)() = Python<int (*)()>("Py_IsFinalizing") != nullptr
                               ? Python<int (*)()>("Py_IsFinalizing")
                               : Python<int (*)()>("_Py_IsFinalizing");
  void* (*thread_state)() = Python<void* (*)()>("PyGILState_GetThisThreadState");
  int (*take_lock)() = Python<int (*)()>("PyGILState_Ensure");
  void (*give_lock)(int) = Python<void (*)(int)>("PyGILState_Release");
  PyObject* (*modules)() = Python<PyObject* (*)()>("PyImport_GetModuleDict");
  PyObject* (*item)(PyObject*, const char*) =
      Python<PyObject* (*)(PyObject*, const char*)>("PyDict_GetItemString");
  PyObject* (*attribute)(PyObject*, const char*) =
      Python<PyObject* (*)(PyObject*, const char*)>("PyObject_GetAttrString");
  int (*set_attribute)(PyObject*, const char*, PyObject*) =
      Python<int (*)(PyObject*, const char*, PyObject*)>("PyObject_SetAttrString");
  PyObject* (*call)(PyObject*, const char*, const char*, ...) =
      Python<PyObject* (*)(PyObject*, const char*, const char*, ...)>("PyObject_CallMethod");
  PyObject* (*values)(PyObject*) = Python<PyObject* (*)(PyObject*)>("PyDict_Values");
  ssize_t (*size)(PyObject*) = Python<ssize_t (*)(PyObject*)>("PyList_Size");
  PyObject* (*element)(PyObject*,
                       ssize_t) = Python<PyObject* (*)(PyObject*, ssize_t)>("PyList_GetItem");
  int (*append)(PyObject*, PyObject*) = Python<int (*)(PyObject*, PyObject*)>("PyList_Append");
  void (*release)(PyObject*) = Python<void (*)(PyObject*)>("Py_DecRef");
  void (*take_error)(PyObject**, PyObject**, PyObject**) =
      Python<void (*)(PyObject**, PyObject**, PyObject**)>("PyErr_Fetch");
  void (*put_error)(PyObject*, PyObject*,
                    PyObject*) = Python<void (*)(PyObject*, PyObject*, PyObject*)>("PyErr_Restore");

  PyObject* (*builtins)() = Python<PyObject* (*)()>("PyEval_GetBuiltins");
  PyObject* (*new_dict)() = Python<PyObject* (*)()>("PyDict_New");
  int (*set_item)(PyObject*, const char*, PyObject*) =
      Python<int (*)(PyObject*, const char*, PyObject*)>("PyDict_SetItemString");
  PyObject* (*run)(const char*, int, PyObject*, PyObject*, void*) =
      Python<PyObject* (*)(const char*, int, PyObject*, PyObject*, void*)>("PyRun_StringFlags");
  PyObject* (*new_module)(const char*) = Python<PyObject* (*)(const char*)>("PyModule_New");
  PyObject* (*new_function)(void*, PyObject*, PyObject*) =
      Python<PyObject* (*)(void*, PyObject*, PyObject*)>("PyCFunction_NewEx");
  PyObject* (*text)(const char*) = Python<PyObject* (*)(const char*)>("PyUnicode_FromString");
  int (*insert)(PyObject*, ssize_t,
                PyObject*) = Python<int (*)(PyObject*, ssize_t, PyObject*)>("PyList_Insert");
  int (*text_is)(PyObject*, const char*) =
      Python<int (*)(PyObject*, const char*)>("PyUnicode_CompareWithASCIIString");
  PyObject* (*tuple_item)(PyObject*,
                          ssize_t) = Python<PyObject* (*)(PyObject*, ssize_t)>("PyTuple_GetItem");
  void (*retain)(PyObject*) = Python<void (*)(PyObject*)>("Py_IncRef");
  PyObject* none = Python<PyObject*>("_Py_NoneStruct");

  void (*clear_error)() = Python<void (*)()>("PyErr_Clear");

  bool complete() const {
    return clear_error && builtins && new_dict && set_item && run && new_module && new_function &&
           text && insert && text_is && tuple_item && retain && none && is_initialized &&
           is_finalizing && thread_state && take_lock && give_lock && modules && item &&
           attribute && set_attribute && call && values && size && element && append && release &&
           take_error && put_error;
  }
};

// A reference that is given back.
class Object {
 public:
  Object(const Interpreter& python, PyObject* object) : python_(python), object_(object) {}
  ~Object() {
    if (object_ != nullptr) python_.release(object_);
  }
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  PyObject* get() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  const Interpreter& python_;
  PyObject* object_;
};

// The interpreter's lock, and the error that was set before.
class Locked {
 public:
  explicit Locked(const Interpreter& python) : python_(python), lock_(python.take_lock()) {
    python_.take_error(&type_, &value_, &trace_);
  }
  ~Locked() {
    python_.put_error(type_, value_, trace_);
    python_.give_lock(lock_);
  }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  const Interpreter& python_;
  int lock_;
  PyObject* type_ = nullptr;
  PyObject* value_ = nullptr;
  PyObject* trace_ = nullptr;
};

}  // namespace acltape::torch_plugin
