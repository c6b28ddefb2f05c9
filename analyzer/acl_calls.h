// What each function of the ACL C interface means for a replay of the program that called it: one
// table, by name.
#pragma once

#include <cstdint>
#include <string_view>

namespace acltape::analyzer {

enum class AclCallKind : uint8_t {
  kOperator,  // aclnnX: a launch
  // Copies and fills. "Async" is a task of a stream, else the host waits for it.
  kCopy,
  kCopyAsync,
  kCopy2d,
  kCopy2dAsync,
  kFill,
  kFillAsync,
  kFill32,
  kFill32Async,
  kValueWrite,
  kValueWait,
  // Handles.
  kStreamCreate,
  kStreamDestroy,
  kEventCreate,
  kEventDestroy,
  kNotifyCreate,
  kNotifyDestroy,
  // Order among streams.
  kEventRecord,
  kEventWait,
  kEventReset,
  kNotifyRecord,
  kNotifyWait,
  // The host waits, or learns that something has ended: what follows may rely on it.
  kDeviceSync,
  kStreamSync,
  kEventSync,
  kStreamQuery,
  kEventQuery,
  kEventTime,
  // Graphs.
  kCaptureBegin,
  kCaptureEnd,
  kGroupBegin,
  kGroupEnd,
  kUpdateBegin,
  kUpdateEnd,
  kExecute,
  kModelDestroy,
  // The program's own code in stream order: its effect is not in the trace.
  kHostFunction,
  // Memory: a replay plans it at once.
  kMemory,
  // Nothing that changes values or order: getters, settings, objects of the operator library.
  kNoEffect,
  kUnknown
};

struct AclFunction {
  std::string_view name;
  AclCallKind kind = AclCallKind::kUnknown;
  int stream = -1;   // position of the stream argument
  int object = -1;   // position of the event, model, notify, group or pointer that it is about
  int detail = -1;   // position of flags, of the value that a query gave, of the second event
  int64_t done = 0;  // of queries: the value that says "ended"
};

// The row of a function; operators ("aclnn...") and functions that the table does not know have
// rows of their own, without a name.
const AclFunction& FindAclFunction(std::string_view name);

// The host stops until the device has got somewhere.
bool WaitsOnHost(AclCallKind kind);
// It belongs to what an iteration of the program does every time, unlike getters, allocations,
// queries and the making of events, whose number may differ.
bool RepeatsWithTheStep(AclCallKind kind);
// Operators, copies, fills and value writes and waits: what executes on the device and names
// memory.
bool IsDeviceWork(AclCallKind kind);

}  // namespace acltape::analyzer
