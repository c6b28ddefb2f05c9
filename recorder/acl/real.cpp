#include "recorder/acl/real.h"

#include <dlfcn.h>
#include <string.h>

#include "acl/invoke/operator_table.h"
#include "generated/recorder/operator_parts.h"
#include "recorder/acl/communicators.h"
#include "recorder/acl/interface.h"
#include "recorder/acl/marks.h"
#include "recorder/acl/message_groups.h"
#include "recorder/acl/messages.h"
#include "recorder/acl/objects.h"
#include "recorder/acl/queue_calls.h"
#include "recorder/acl/thread.h"
#include "recorder/agent/loaded_libraries.h"

namespace acltape::acl_agent {

std::atomic<void*> g_real[kMaxFunctions];

namespace {

using DlsymFunction = void* (*)(void*, const char*);
DlsymFunction g_dlsym = nullptr;

constexpr char kFirstPhase[] = "GetWorkspaceSize";

bool IsFirstPhase(const char* name) {
  const size_t bytes = strlen(name);
  const size_t suffix = strlen(kFirstPhase);
  return bytes > suffix && strcmp(name + bytes - suffix, kFirstPhase) == 0;
}

// The versions that glibc gave the symbol on each machine.
void FindDlsym() {
  for (const char* version : {"GLIBC_2.34", "GLIBC_2.2.5", "GLIBC_2.17"}) {
    if (g_dlsym != nullptr) return;
    g_dlsym = reinterpret_cast<DlsymFunction>(dlvsym(RTLD_NEXT, "dlsym", version));
  }
}

__attribute__((constructor)) void Begin() { FindDlsym(); }

uint32_t OperatorBase() { return kCallCount; }
uint32_t ObjectBase() { return kCallCount + 2 * acl::OperatorCount(); }
uint32_t MarkBase() { return ObjectBase() + kMaxObjectFunctions; }
uint32_t QueueBase() { return MarkBase() + kMaxMarkFunctions; }
uint32_t MessageBase() { return QueueBase() + kMaxQueueFunctions; }
uint32_t GroupBase() { return MessageBase() + kMaxMessageFunctions; }
uint32_t CommunicatorBase() { return GroupBase() + kMaxGroupFunctions; }

const char* NameOf(uint32_t function) {
  if (function < OperatorBase()) return kCalls[function].name;
  if (function < ObjectBase()) {
    const acl::OperatorInfo& op = acl::OperatorAt((function - OperatorBase()) / 2);
    return (function - OperatorBase()) % 2 == 0 ? op.workspace_name.data() : op.name.data();
  }
  if (function < MarkBase()) return kObjectFunctions[function - ObjectBase()].name;
  if (function < QueueBase()) return kMarkFunctions[function - MarkBase()].name;
  if (function < MessageBase()) return kQueueFunctions[function - QueueBase()].name;
  if (function < GroupBase()) return kMessageFunctions[function - MessageBase()].name;
  if (function < CommunicatorBase()) return kGroupFunctions[function - GroupBase()].name;
  return kCommunicatorFunctions[function - CommunicatorBase()].name;
}

void* WrapperOf(uint32_t function) {
  if (function < OperatorBase()) return kCallWrappers[function];
  if (function < ObjectBase()) {
    const uint32_t op = (function - OperatorBase()) / 2;
    return kOperatorWrappers[op / kOperatorsPerPart]
                            [2 * (op % kOperatorsPerPart) + (function - OperatorBase()) % 2];
  }
  if (function < MarkBase()) return kObjectFunctions[function - ObjectBase()].wrapper;
  if (function < QueueBase()) return kMarkFunctions[function - MarkBase()].wrapper;
  if (function < MessageBase()) return kQueueFunctions[function - QueueBase()].wrapper;
  if (function < GroupBase()) return kMessageFunctions[function - MessageBase()].wrapper;
  if (function < CommunicatorBase()) return kGroupFunctions[function - GroupBase()].wrapper;
  return kCommunicatorFunctions[function - CommunicatorBase()].wrapper;
}

// kMaxFunctions: the table does not have it.
uint32_t NumberIn(const WrappedFunction* table, uint32_t base, const char* name) {
  for (uint32_t i = 0; table[i].name != nullptr; ++i) {
    if (strcmp(table[i].name, name) == 0) return base + i;
  }
  return kMaxFunctions;
}

void* FindByName(const char* name) {
  if (g_dlsym == nullptr) FindDlsym();
  if (g_dlsym == nullptr) return nullptr;
  void* found = g_dlsym(RTLD_NEXT, name);
  if (found != nullptr) return found;
  return agent::FindInLoaded(
      {"libascendcl", "libopapi", "libnnopbase", "libacl_rt", "libaclnn", "libmsprofiler",
       "libms_tools_ext", "libacl_tdt_queue", "libhccl", "libhcomm"},
      name, g_dlsym);
}

// Gives the wrapper of this name in place of the function that dlsym found, where there is a
// wrapper.
void* Wrapped(const char* name, void* found) {
  if (found == nullptr) return nullptr;
  const uint32_t function = FunctionOf(name);
  if (function == kMaxFunctions) {
    if (strncmp(name, "aclnn", 5) == 0 && IsFirstPhase(name)) {
      if (Thread* thread = Enter()) {
        thread->tape->WriteLedger(1, 1, "operator_not_in_table", name,
                                  "the program asked for an operator that the table lacks; its "
                                  "calls are not recorded",
                                  "add a row to acl/data/aclnn_ops.json");
      }
    }
    return found;
  }
  void* wrapper = WrapperOf(function);
  if (found == wrapper) return Real(function) != nullptr ? wrapper : nullptr;
  void* none = nullptr;
  g_real[function].compare_exchange_strong(none, found);
  return wrapper;
}

}  // namespace

void* FindReal(uint32_t function) {
  void* found = FindByName(NameOf(function));
  if (found == WrapperOf(function)) found = nullptr;
  if (found != nullptr) g_real[function].store(found);
  return found;
}

uint32_t OperatorFunction(uint32_t op, bool second_phase) {
  return OperatorBase() + 2 * op + (second_phase ? 1 : 0);
}

uint32_t ObjectFunctionNumber(uint32_t object_function) { return ObjectBase() + object_function; }
uint32_t MarkFunctionNumber(uint32_t mark_function) { return MarkBase() + mark_function; }
uint32_t QueueFunctionNumber(uint32_t queue_function) { return QueueBase() + queue_function; }
uint32_t MessageFunctionNumber(uint32_t message_function) {
  return MessageBase() + message_function;
}
uint32_t GroupFunctionNumber(uint32_t group_function) { return GroupBase() + group_function; }
uint32_t CommunicatorFunctionNumber(uint32_t communicator_function) {
  return CommunicatorBase() + communicator_function;
}

uint32_t FunctionOf(const char* name) {
  if (strncmp(name, "aclnn", 5) == 0) {
    const acl::OperatorInfo* op = acl::FindOperator(name);
    if (op != nullptr) return OperatorFunction(op->index, true);
    if (!IsFirstPhase(name)) return kMaxFunctions;
    op = acl::FindOperator({name, strlen(name) - strlen(kFirstPhase)});
    return op != nullptr ? OperatorFunction(op->index, false) : kMaxFunctions;
  }
  for (uint32_t call = 0; call < kCallCount; ++call) {
    if (strcmp(kCalls[call].name, name) == 0) return call;
  }
  const uint32_t object = NumberIn(kObjectFunctions, ObjectBase(), name);
  if (object < kMaxFunctions) return object;
  const uint32_t mark = NumberIn(kMarkFunctions, MarkBase(), name);
  if (mark < kMaxFunctions) return mark;
  const uint32_t queue = NumberIn(kQueueFunctions, QueueBase(), name);
  if (queue < kMaxFunctions) return queue;
  const uint32_t message = NumberIn(kMessageFunctions, MessageBase(), name);
  if (message < kMaxFunctions) return message;
  const uint32_t group = NumberIn(kGroupFunctions, GroupBase(), name);
  if (group < kMaxFunctions) return group;
  return NumberIn(kCommunicatorFunctions, CommunicatorBase(), name);
}

void* RealByName(const char* name) {
  const uint32_t function = FunctionOf(name);
  return function == kMaxFunctions ? FindByName(name) : Real(function);
}

}  // namespace acltape::acl_agent

// Names of other interfaces jump to the real function as the last act: what RTLD_NEXT and
// RTLD_DEFAULT mean depends on the caller's return address.
extern "C" ACLTAPE_AGENT_API __attribute__((optimize("O2"))) void* dlsym(void* handle,
                                                                         const char* name) {
  using namespace acltape::acl_agent;
  if (g_dlsym == nullptr) FindDlsym();
  const bool may_be_wrapped = strncmp(name, "acl", 3) == 0 || strncmp(name, "mstx", 4) == 0 ||
                              strncmp(name, "Hccl", 4) == 0;
  if (!may_be_wrapped || handle == RTLD_NEXT) {
    return g_dlsym(handle, name);
  }
  return Wrapped(name, g_dlsym(handle, name));
}
