// A table of the functions of the ACL C interface, by name. It says what a replay does with a call
// of each function.
#pragma once

#include <cstdint>
#include <string_view>

namespace acltape::analyzer {

enum class AclCallKind : uint8_t {
  kOperator,  // aclnnX: a launch
  // Copies and fills. "Async" means a task of a stream. For the others the host waits.
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
  // The host waits, or learns that something has ended. Later calls may rely on it.
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
  // The program's own code in stream order. Its effect is not in the trace.
  kHostFunction,
  // Memory. A replay plans all of it before it starts.
  kMemory,
  // Calls that change neither values nor order: getters, settings, objects of the operator library.
  kNoEffect,
  kUnknown
};

struct AclFunction {
  std::string_view name;
  AclCallKind kind = AclCallKind::kUnknown;
  int stream = -1;  // position of the stream argument
  // The position of the event, model, notify, group or pointer on which the function works.
  int object = -1;
  // The position of flags, of the result of a query, or of a second event.
  int detail = -1;
  int64_t done = 0;  // the value of a query's result that means "ended"
};

// Finds the row of a function. Operators ("aclnn...") and functions that the table does not know
// get rows without a name.
const AclFunction& FindAclFunction(std::string_view name);

// True if the host waits until the device has done some work.
bool WaitsOnHost(AclCallKind kind);
// True if every iteration of the program repeats such calls. The number of getters, allocations,
// queries and creations of events may differ.
bool RepeatsWithTheStep(AclCallKind kind);
// True for work that executes on the device and names memory: operators, copies, fills, value
// writes and value waits.
bool IsDeviceWork(AclCallKind kind);

}  // namespace acltape::analyzer
