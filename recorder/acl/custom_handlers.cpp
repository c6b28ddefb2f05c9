// Work that the thread of the adapter's queue calls as a whole. An extension of the adapter gives
// OpCommand a function, which calls operators or launches kernels, and the queue calls it later.
// Nothing in such a call tells which operator of PyTorch asked for it. The wrapper stands before
// the adapter's own OpCommand::SetCustomHandler, where the asking operator is open, and has it open
// again while the function runs.
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include <atomic>
#include <cstdint>

#include "recorder/acl/thread.h"
#include "recorder/agent/loaded_libraries.h"

namespace acltape::acl_agent {
namespace {

// std::function<int()> as libstdc++ lays it out. The recorder brings no C++ runtime along, which
// that class needs.
struct Storage {
  void* words[2];
};
enum class Operation : unsigned { kTypeInfo, kAddress, kClone, kDestroy };
struct Function {
  Storage storage;
  bool (*manager)(Storage& to, const Storage& from, Operation operation);  // null: it is empty
  int (*invoker)(const Storage& storage);
};
static_assert(sizeof(Function) == 4 * sizeof(void*), "the layout of std::function");

// The program's function, shared by all copies of the one that the adapter gets.
struct Held {
  Function function;
  uint64_t asked_by;
  std::atomic<uint32_t> users;
};

Held* HeldIn(const Storage& storage) { return static_cast<Held*>(storage.words[0]); }

void Release(Held* held) {
  if (held->users.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  Function& function = held->function;
  function.manager(function.storage, function.storage, Operation::kDestroy);
  free(held);
}

bool Manage(Storage& to, const Storage& from, Operation operation) {
  switch (operation) {
    case Operation::kTypeInfo:
      to.words[0] = nullptr;
      break;
    case Operation::kAddress:
      to.words[0] = HeldIn(from);
      break;
    case Operation::kClone:
      HeldIn(from)->users.fetch_add(1, std::memory_order_relaxed);
      to = from;
      break;
    case Operation::kDestroy:
      Release(HeldIn(to));
      break;
  }
  return false;
}

// Where the function throws on the program's own thread, the operator restores the open call.
int Invoke(const Storage& storage) {
  const Held* held = HeldIn(storage);
  const Function& function = held->function;
  Thread* thread = Enter();
  if (thread == nullptr) return function.invoker(function.storage);
  const uint64_t outer_call = thread->tape->open_call;
  thread->tape->open_call = held->asked_by;
  const int result = function.invoker(function.storage);
  thread->tape->open_call = outer_call;
  return result;
}

// A copy of the program's function with the operator that is open now; null: none is open.
Held* Hold(const Function& function) {
  Thread* thread = function.manager != nullptr ? Enter() : nullptr;
  if (thread == nullptr || thread->tape->open_call == 0) return nullptr;
  auto* held = static_cast<Held*>(calloc(1, sizeof(Held)));
  if (held == nullptr) return nullptr;
  held->function.manager = function.manager;
  held->function.invoker = function.invoker;
  function.manager(held->function.storage, function.storage, Operation::kClone);
  held->asked_by = thread->tape->open_call;
  held->users.store(1, std::memory_order_relaxed);
  return held;
}

#define ACLTAPE_SET_CUSTOM_HANDLER "_ZN6at_npu6native9OpCommand16SetCustomHandlerESt8functionIFivEE"
using SetHandler = void* (*)(void* command, Function* handler);

SetHandler RealSetHandler() {
  static std::atomic<void*> known{nullptr};
  void* real = known.load(std::memory_order_relaxed);
  if (real == nullptr) {
    // The adapter's library is opened privately.
    real = agent::FindInLoaded({"libtorch_npu.so"}, ACLTAPE_SET_CUSTOM_HANDLER, dlsym);
    if (real == nullptr) real = dlsym(RTLD_NEXT, ACLTAPE_SET_CUSTOM_HANDLER);
    known.store(real, std::memory_order_relaxed);
  }
  return reinterpret_cast<SetHandler>(real);
}

}  // namespace

// at_npu::native::OpCommand& OpCommand::SetCustomHandler(std::function<int()>): the caller makes
// the argument and ends it.
extern "C" __attribute__((visibility("default"))) void* SetCustomHandler(
    void* command, Function* handler) __asm__(ACLTAPE_SET_CUSTOM_HANDLER);

void* SetCustomHandler(void* command, Function* handler) {
  const SetHandler real = RealSetHandler();
  if (real == nullptr) abort();  // a command of no adapter: the work would be lost
  Held* held = Hold(*handler);
  if (held == nullptr) return real(command, handler);
  Function wrapped{{{held, nullptr}}, Manage, Invoke};
  void* result = real(command, &wrapped);
  if (wrapped.manager != nullptr) Release(held);  // null: the adapter has moved it away
  return result;
}

}  // namespace acltape::acl_agent
