// The functions that the wrappers call.
// A program that links the ACL libraries meets the wrappers because they are preloaded; RTLD_NEXT
// then finds the real functions. A program that opens the libraries itself asks dlsym for each
// function, and is given the wrapper where there is one (rule GEN-10: only if the library has the
// function).
#pragma once

#include <atomic>
#include <cstdint>

namespace acltape::acl_agent {

// Interface functions come first, in the order of kCalls, then the first and the second phase of
// each operator, then what wraps the operators' objects (objects.h), then marks (marks.h), then
// queues (queue_calls.h), then texts of failures (messages.h), then groups of messages between
// ranks (message_groups.h), then names of communicators (communicators.h).
constexpr uint32_t kMaxFunctions = 8192;
constexpr uint32_t kMaxObjectFunctions = 64;
constexpr uint32_t kMaxMarkFunctions = 64;
constexpr uint32_t kMaxQueueFunctions = 64;
constexpr uint32_t kMaxMessageFunctions = 64;
constexpr uint32_t kMaxGroupFunctions = 64;
extern std::atomic<void*> g_real[kMaxFunctions];

// A row of a table of functions that are wrapped by hand, for dlsym. A null name ends the table.
struct WrappedFunction {
  const char* name;
  void* wrapper;
};

// Looks a function up in the libraries of the process; null when none has it.
void* FindReal(uint32_t function);

inline void* Real(uint32_t function) {
  void* real = g_real[function].load(std::memory_order_relaxed);
  return __builtin_expect(real != nullptr, 1) ? real : FindReal(function);
}

// Number of the function of this name, or kMaxFunctions.
uint32_t FunctionOf(const char* name);
uint32_t OperatorFunction(uint32_t op, bool second_phase);
uint32_t ObjectFunctionNumber(uint32_t object_function);
uint32_t MarkFunctionNumber(uint32_t mark_function);
uint32_t QueueFunctionNumber(uint32_t queue_function);
uint32_t MessageFunctionNumber(uint32_t message_function);
uint32_t GroupFunctionNumber(uint32_t group_function);
uint32_t CommunicatorFunctionNumber(uint32_t communicator_function);

// An interface function for the recorder's own use, past the wrapper; null when there is none.
void* RealByName(const char* name);

// The same as a function of its type.
template <typename Function>
void Resolve(Function& function, const char* name) {
  function = reinterpret_cast<Function>(RealByName(name));
}

}  // namespace acltape::acl_agent
