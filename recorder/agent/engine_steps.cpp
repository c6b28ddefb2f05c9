#include "recorder/agent/engine_steps.h"

#include <dlfcn.h>

#include "generated/recorder/agent/engine_steps_text.h"
#include "recorder/agent/interpreter.h"
#include "recorder/agent/tape.h"

namespace acltape::agent {

namespace {

// The interpreter calls this between two instructions of its main thread, with its lock held. The
// names of the text live as long as what it has put around the program's functions.
int RunText(void*) {
  const Interpreter& py = TheInterpreter();
  if (!py.complete) return 0;
  Object* names = py.new_dict();
  if (names == nullptr || py.set_item(names, "__builtins__", py.builtins()) != 0) {
    py.clear_error();
    return 0;
  }
  Object* done = py.run(kEngineSteps, kFileInput, names, names, nullptr);
  if (done != nullptr) {
    py.release(done);
    return 0;
  }
  py.clear_error();
  if (Tape* tape = CurrentTape()) {
    tape->WriteLedger(1, 1, "engine_steps_not_followed", "the interpreter",
                      "what follows the steps of an engine could not be set up",
                      "mark the steps in the program: acltape.step()");
  }
  return 0;
}

}  // namespace

void FollowEngineSteps() {
  if (Arena() == nullptr || Arena()->record_composites == 0) return;
  const auto add =
      reinterpret_cast<int (*)(int (*)(void*), void*)>(dlsym(RTLD_DEFAULT, "Py_AddPendingCall"));
  if (add != nullptr) add(RunText, nullptr);
}

}  // namespace acltape::agent

// engine_steps.py calls this: a row of the ledger about what is not recorded.
extern "C" ACLTAPE_AGENT_API void acltape_agent_note(const char* kind, const char* subject,
                                                     const char* cause, const char* remedy) {
  acltape::agent::Tape* tape = acltape::agent::CurrentTape();
  if (tape != nullptr) tape->WriteLedger(1, 1, kind, subject, cause, remedy);
}
