// Kernels that torch.compile's inductor generates for the CPU.
//
// Inductor writes C++, compiles it, and loads each kernel as a Python function that takes the
// tensors in the order of the kernel's pointers. CppPythonBindingsCodeCache makes these functions
// (torch/_inductor/codecache.py). We put one around each: it says what the kernel reads and writes,
// by the names that inductor gives its pointers (in_ptr, in_out_ptr, out_ptr).
//
// The module is imported at the first compilation. Until then there is one entry more in
// sys.meta_path; it is a function in C, so that tracers of the program see none of it.
#include "recorder/torch/inductor.h"

#include <string>

#include "recorder/torch/guard.h"
#include "recorder/torch/opaque.h"
#include "recorder/torch/thread_state.h"

namespace acltape::torch_plugin {

namespace {

constexpr const char* kModule = "torch._inductor.codecache";

// Follows a module that is loaded already.
constexpr char kFollow[] = R"python(
def follow(codecache, begin, end):
    import ctypes, hashlib, re, sys
    begin = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_void_p,
                              ctypes.c_int, ctypes.c_int, ctypes.c_int)(begin)
    end = ctypes.PYFUNCTYPE(None, ctypes.c_int)(end)
    cache = codecache.CppPythonBindingsCodeCache
    load = cache.load_pybinding_async.__func__

    def pointers(types, code):
        """Positions of the tensors that a kernel reads, updates and writes."""
        names = re.search(r"\bkernel\(([^)]*)\)", code).group(1).split(",")
        groups = [], [], []
        for at, (kind, name) in enumerate(zip(types, names, strict=True)):
            if "*" not in kind:
                continue
            if "in_out_ptr" in name:
                groups[1].append(at)
            elif "out_ptr" in name:
                groups[2].append(at)
            else:
                groups[0 if "const" in kind else 1].append(at)
        return groups

    def recorded(kernel, types, code):
        groups = pointers(types, code)
        order = sum(groups, [])
        counts = [len(group) for group in groups]
        addresses = ctypes.c_uint64 * len(order)
        version = hashlib.sha1(code.encode()).hexdigest()[:8].encode()
        name = None

        def call(*arguments):
            nonlocal name
            if name is None:
                scope = sys._getframe(1).f_globals
                name = next((key for key, value in scope.items() if value is call), "kernel").encode()
            tensors = addresses(*[arguments[at]._cdata for at in order])
            if not begin(name, version, tensors, *counts):
                return kernel(*arguments)
            failed = 1
            try:
                result = kernel(*arguments)
                failed = 0
                return result
            finally:
                end(failed)

        return call

    def load_recorded(cls, argtypes, main_code, *arguments, **options):
        future = load(cls, argtypes, main_code, *arguments, **options)
        if cls is not cache:
            return future
        kernel = None

        def result():
            nonlocal kernel
            if kernel is None:
                kernel = recorded(future(), argtypes, main_code)
            return kernel

        return result

    cache.load_pybinding_async = classmethod(load_recorded)
)python";

// Finds the module as it would be found without us and follows it once it is loaded.
constexpr char kFind[] = R"python(
import importlib.util, sys
sys.meta_path.remove(finder)
spec = importlib.util.find_spec(module)
def load(execute):
    def exec_module(module):
        execute(module)
        follow(module, begin, end)
    return exec_module
if spec is not None:
    spec.loader.exec_module = load(spec.loader.exec_module)
)python";

const Interpreter* g_python = nullptr;
PyObject* g_finder = nullptr;  // borrowed from sys.meta_path until the module is found

void SayThatItFailed() {
  ThreadState* state = CurrentThread();
  if (state == nullptr) return;
  state->tape->WriteLedger(
      2, 1, "inductor_not_followed", kModule,
      "kernels that torch.compile generates are not recorded with this PyTorch",
      "compile with backend=\"aot_eager\"");
}

// A namespace with the functions that the code above needs; nullptr: an error is set.
PyObject* Namespace(const Interpreter& python) {
  PyObject* scope = python.new_dict();
  if (scope == nullptr) return nullptr;
  std::string text;
  Guarded(wire::LeftOut::kCalls, [&] {
    text = "begin = " + std::to_string(reinterpret_cast<uintptr_t>(&acltape_torch_opaque_begin)) +
           "\nend = " + std::to_string(reinterpret_cast<uintptr_t>(&acltape_torch_opaque_end)) +
           "\nmodule = '" + kModule + "'\n" + kFollow;
  });
  if (text.empty()) {
    python.release(scope);
    return nullptr;
  }
  python.set_item(scope, "__builtins__", python.builtins());
  const Object done(python, python.run(text.c_str(), kFileInput, scope, scope, nullptr));
  if (done) return scope;
  python.release(scope);
  return nullptr;
}

// find_spec(name, path, target) of the entry in sys.meta_path.
PyObject* FindSpec(PyObject*, PyObject* arguments) {
  const Interpreter& python = *g_python;
  PyObject* name = python.tuple_item(arguments, 0);
  if (name == nullptr || python.text_is(name, kModule) != 0) {
    python.retain(python.none);
    return python.none;
  }
  const Object scope(python, Namespace(python));
  if (scope) {
    python.set_item(scope.get(), "finder", g_finder);
    const Object done(python, python.run(kFind, kFileInput, scope.get(), scope.get(), nullptr));
    PyObject* spec = done ? python.item(scope.get(), "spec") : nullptr;
    if (spec != nullptr) {
      python.retain(spec);
      return spec;
    }
  }
  // The import goes on without us.
  python.clear_error();
  SayThatItFailed();
  python.retain(python.none);
  return python.none;
}

// PyMethodDef, which is part of the stable interface.
struct Method {
  const char* name;
  PyObject* (*function)(PyObject*, PyObject*);
  int flags;
  const char* doc;
};
Method g_find_spec = {"find_spec", &FindSpec, 1 /* METH_VARARGS */, nullptr};

bool AddFinder(const Interpreter& python) {
  PyObject* sys = python.item(python.modules(), "sys");
  if (sys == nullptr) return false;
  const Object path(python, python.attribute(sys, "meta_path"));
  const Object finder(python, python.new_module("acltape"));
  const Object function(python, python.new_function(&g_find_spec, nullptr, nullptr));
  if (!path || !finder || !function) return false;
  g_finder = finder.get();
  return python.set_attribute(finder.get(), "find_spec", function.get()) == 0 &&
         python.insert(path.get(), 0, finder.get()) == 0;
}

bool FollowNow(const Interpreter& python, PyObject* module) {
  const Object scope(python, Namespace(python));
  if (!scope || python.set_item(scope.get(), "codecache", module) != 0) return false;
  const Object done(python, python.run("follow(codecache, begin, end)\n", kFileInput, scope.get(),
                                       scope.get(), nullptr));
  return static_cast<bool>(done);
}

}  // namespace

void FollowInductor(const Interpreter& python) {
  g_python = &python;
  PyObject* module = python.item(python.modules(), kModule);
  const bool follows = module != nullptr ? FollowNow(python, module) : AddFinder(python);
  if (!follows) SayThatItFailed();
}

}  // namespace acltape::torch_plugin
