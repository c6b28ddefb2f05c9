// Ranges of torch.nn modules, for `record --modules`.
//
// PyTorch has global hooks around every module's forward. They are Python functions, so they are
// set up from Python: at the first recorded operator a call is left with the interpreter, which
// runs it between two instructions of the main thread. A module is named by its path in the
// outermost module that was called ("blocks.0.qkv"), the outermost by its class. A forward that
// raises leaves its range open until the next outermost module starts. torch.compile traces hooks
// as code of the module; there they do nothing, and what it compiled has no ranges inside.
#include "recorder/torch/modules.h"

#include <string>

#include "recorder/torch/guard.h"
#include "recorder/torch/python_api.h"
#include "recorder/torch/thread_state.h"

namespace acltape::torch_plugin {

namespace {

constexpr char kHooks[] = R"python(
def _acltape_follow_modules(begin, end):
    import ctypes, threading, weakref
    import torch
    import torch.nn.modules.module as module_hooks
    begin = ctypes.CFUNCTYPE(None, ctypes.c_char_p)(begin)
    end = ctypes.CFUNCTYPE(None)(end)
    names = weakref.WeakKeyDictionary()
    local = threading.local()
    compiler = getattr(torch, "compiler", None)
    compiles = getattr(compiler, "is_compiling", lambda: False)

    def before(module, arguments):
        if compiles():
            return
        open_modules = local.__dict__.setdefault("open", [])
        while open_modules and module not in names:
            open_modules.pop()
            end()
        if module not in names:
            for path, child in module.named_modules():
                names.setdefault(child, path or type(child).__name__)
        open_modules.append(module)
        begin(names[module].encode())

    def after(module, arguments, result):
        if compiles():
            return
        open_modules = local.__dict__.get("open", [])
        while module in open_modules:
            last = open_modules.pop()
            end()
            if last is module:
                break

    module_hooks.register_module_forward_pre_hook(before)
    module_hooks.register_module_forward_hook(after)
)python";

int SetUpHooks(void*) {
  const auto run = Python<int (*)(const char*)>("PyRun_SimpleString");
  if (run == nullptr) return 0;
  const auto begin = reinterpret_cast<uintptr_t>(&acltape_torch_module_begin);
  const auto end = reinterpret_cast<uintptr_t>(&acltape_torch_module_end);
  int result = -1;
  Guarded(wire::LeftOut::kRanges, [&] {
    const std::string code = std::string(kHooks) + "_acltape_follow_modules(" +
                             std::to_string(begin) + ", " + std::to_string(end) +
                             ")\ndel _acltape_follow_modules\n";
    result = run(code.c_str());
  });
  if (result != 0) {
    if (ThreadState* state = CurrentThread()) {
      state->tape->WriteLedger(1, 1, "modules_not_followed", "torch.nn",
                               "the hooks around module calls could not be set up",
                               "use user ranges (torch.profiler.record_function) instead");
    }
  }
  return 0;
}

}  // namespace

void FollowModules() {
  const auto add = Python<int (*)(int (*)(void*), void*)>("Py_AddPendingCall");
  if (add != nullptr) add(SetUpHooks, nullptr);
}

}  // namespace acltape::torch_plugin

extern "C" {

void acltape_torch_module_begin(const char* name) {
  using namespace acltape;
  torch_plugin::ThreadState* state = torch_plugin::CurrentThread();
  if (state != nullptr) torch_plugin::BeginScope(*state, name, wire::ScopeKind::kModule);
}

void acltape_torch_module_end() {
  using namespace acltape;
  if (torch_plugin::ThreadState* state = torch_plugin::CurrentThread()) {
    torch_plugin::EndScope(*state);
  }
}

}  // extern "C"
