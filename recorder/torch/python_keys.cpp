// Higher-order operators (torch.cond, while_loop, flex_attention) have no entry in the dispatcher.
// PyTorch dispatches them in Python by the thread's included keys and raises an error for a key
// that it has no kernel for, as it has none for ours. Each operator has a set of the keys that it
// does not let fall through (torch/_ops.py), so ours are taken out of these sets: out of those that
// exist, and for later ones by the list that each of them begins with.
//
// All of it goes through the C interface: a line of Python would be seen by the program's own
// tracers and profilers.
#include "recorder/torch/python_keys.h"

#include <atomic>
#include <mutex>

#include "recorder/torch/dispatch_keys.h"
#include "recorder/torch/inductor.h"
#include "recorder/torch/python_api.h"
#include "recorder/torch/thread_state.h"

namespace acltape::torch_plugin {

namespace {

bool TakeOut(const Interpreter& python, PyObject* op, PyObject* key) {
  Object all(python, python.attribute(op, "non_fallthrough_keys"));
  if (!all) return false;
  Object fewer(python, python.call(all.get(), "remove", "O", key));
  return fewer && python.set_attribute(op, "non_fallthrough_keys", fewer.get()) == 0;
}

enum class Outcome { kDone, kTooEarly, kFailed };

Outcome HideOne(const Interpreter& python, PyObject* torch, PyObject* ops, const char* name) {
  Object key(python, python.call(torch, "_dispatch_key_parse", "s", name));
  if (!key) return Outcome::kFailed;
  Object defaults(python,
                  python.attribute(ops, "_HIGHER_ORDER_OP_DEFAULT_FALLTHROUGH_DISPATCH_KEYS"));
  Object known(python, python.attribute(ops, "_higher_order_ops"));
  if (!defaults || !known) return Outcome::kFailed;
  if (python.append(defaults.get(), key.get()) != 0) return Outcome::kFailed;
  Object existing(python, python.values(known.get()));
  if (!existing) return Outcome::kFailed;
  for (ssize_t i = 0; i < python.size(existing.get()); ++i) {
    if (!TakeOut(python, python.element(existing.get(), i), key.get())) return Outcome::kFailed;
  }
  return Outcome::kDone;
}

Outcome Hide(const Interpreter& python) {
  const Locked lock(python);
  PyObject* loaded = python.modules();  // this one and its items are borrowed
  PyObject* torch = python.item(loaded, "torch._C");
  PyObject* ops = python.item(loaded, "torch._ops");
  // The module is there while it is being imported, its last names are not.
  Object last(python, ops != nullptr ? python.attribute(ops, "ops") : nullptr);
  Outcome outcome = Outcome::kTooEarly;
  if (torch != nullptr && last) {
    // PyTorch before 2.0 has no such operators.
    Object any(python, python.attribute(ops, "HigherOrderOperator"));
    outcome = Outcome::kDone;
    for (const c10::DispatchKey key : {kLeafKey, kCompositeKey}) {
      if (any && outcome == Outcome::kDone) {
        outcome = HideOne(python, torch, ops, c10::toString(key));
      }
    }
  }
  if (outcome != Outcome::kTooEarly) FollowInductor(python);
  // Whatever went wrong on the way is ours.
  PyObject* type = nullptr;
  PyObject* value = nullptr;
  PyObject* trace = nullptr;
  python.take_error(&type, &value, &trace);
  for (PyObject* object : {type, value, trace}) {
    if (object != nullptr) python.release(object);
  }
  return outcome;
}

}  // namespace

bool HideKeysFromPython() {
  static const auto* python = new Interpreter;  // never destroyed: hooks use it to the end
  static std::atomic<bool> done{!python->complete()};
  if (done.load(std::memory_order_acquire)) return true;
  // The interpreter's lock must not be asked for by a thread that is not Python's: whoever holds it
  // may wait for a lock of that thread.
  if (python->is_initialized() == 0 || python->is_finalizing() != 0 ||
      python->thread_state() == nullptr) {
    return false;
  }
  const Outcome outcome = Hide(*python);
  if (outcome == Outcome::kTooEarly) return false;
  if (done.exchange(true) || outcome == Outcome::kDone) return true;
  if (ThreadState* state = CurrentThread()) {
    state->tape->WriteLedger(2, 1, "higher_order_operators", "torch._ops",
                             "this PyTorch keeps the dispatch keys of its higher-order operators "
                             "elsewhere, so torch.cond and its like fail under the recorder",
                             "record a program without higher-order operators");
  }
  return true;
}

}  // namespace acltape::torch_plugin
