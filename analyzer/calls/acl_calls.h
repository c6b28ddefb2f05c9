// The meaning that a call of a function of the ACL C interface has for a replay and for a capture.
// The rows are those of acl/data/meaning.json; docs/interface_functions.md shows them.
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
  kReduce,
  kRandom,
  kCollective,  // moves data between ranks
  // Handles.
  kStreamCreate,
  kStreamDestroy,
  kEventCreate,
  kEventDestroy,
  kNotifyCreate,
  kNotifyDestroy,
  kNotifyReset,  // several notifies at once, by the host
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
  kConditionCreate,  // condition of a graph that is being captured
  kConditionTask,    // runs one of its sub-graphs, or one several times
  kBuildBegin,       // a model that is built without a capture
  kStreamBind,       // tasks of the stream become tasks of the model
  kModelPart,        // labels, streams that are activated, the end
  kModelBranch,      // the device chooses where the model goes on
  kBuildEnd,
  kGroupBegin,
  kGroupEnd,
  kUpdateBegin,
  kUpdateEnd,
  kExecute,
  kExecuteNow,  // the host waits for the execution
  kModelDestroy,
  // The program's own code in stream order. Its effect is not in the trace.
  kHostFunction,
  // Memory. A replay plans all of it before it starts.
  kMemory,
  // Memory that begins, or ends, in the order of a stream.
  kPoolAllocate,
  kPoolFree,
  // Calls that change neither values nor order: getters, settings, objects of the operator library.
  kNoEffect,
  // It says what becomes of results that no number can hold, on streams that are created later
  // (rule OVF-03).
  kDeviceMode,
  // The replay leaves it out, for the reason that its row names.
  kLeftOut,
  kUnknown
};

constexpr bool IsMemoryCall(AclCallKind kind) {
  return kind == AclCallKind::kMemory || kind == AclCallKind::kPoolAllocate ||
         kind == AclCallKind::kPoolFree;
}

// Tells functions of one kind apart where that matters.
enum class AclVariant : uint8_t {
  kNone,
  kForced,  // does not wait for the work of the stream that it destroys
  // Events that captures refuse, and those that they take (rule CAP-43).
  kOldEvent,
  kOldEventWithFlags,
  kNewEvent,
  kOpenedEvent,   // an event of another process
  kOpenedNotify,  // a notify of another process
  kOldQuery,      // tells the state of an event of the old kind
  // Memory. Of the last two it is known with which function they can be made again.
  kAllocate,
  kAllocateDevice,
  kAllocateHost,
  kFree,
  kSubGraph,      // a sub-graph of a conditional task
  kExchangeMode,  // exchanges the capture mode of the thread
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
  AclVariant variant = AclVariant::kNone;
  std::string_view reason;  // why a replay cannot give a call back; empty: it can
};

// Facts that hold for all calls of a kind.
struct AclKindFacts {
  AclCallKind kind;
  bool waits_on_host;  // until the device has done some work
  // Iterations of the program may make different numbers of such calls: getters, allocations,
  // queries and creations of events.
  bool varies;
  bool device_work;  // executes on the device and names memory
  bool stream_task;  // a stream runs it in its order, and captures hold it
  bool copy;
  bool plane;                     // a copy of rows with a pitch
  std::string_view capture_rule;  // the rule of lint about such calls in a capture; may be empty
  // How a message goes on that names a stream which captures, for calls that it refuses.
  std::string_view refused;
};

struct AclVariantFacts {
  AclVariant variant;
  std::string_view capture_rule;  // may be empty
};

// Finds the row of a function. Operators ("aclnn...") and functions without a row of their own get
// rows without a name.
const AclFunction& FindAclFunction(std::string_view name);

// True if the flag of a record or wait says that the event is one of outside the graph (rule
// EVT-19).
bool IsExternalFlag(int64_t flag);

const AclKindFacts& FactsOf(AclCallKind kind);
const AclVariantFacts& FactsOf(AclVariant variant);

inline bool WaitsOnHost(AclCallKind kind) { return FactsOf(kind).waits_on_host; }
inline bool RepeatsWithTheStep(AclCallKind kind) { return !FactsOf(kind).varies; }
inline bool IsDeviceWork(AclCallKind kind) { return FactsOf(kind).device_work; }
inline bool IsStreamTask(AclCallKind kind) { return FactsOf(kind).stream_task; }
inline bool IsExecution(AclCallKind kind) {
  return kind == AclCallKind::kExecute || kind == AclCallKind::kExecuteNow;
}
// True if the host waited and learned that work had failed: the code is not about the wait itself.
bool WaitedForFailedWork(AclCallKind kind, int32_t status);
// True for device work that changes memory. The rest of device work only looks at it.
inline bool ChangesMemory(AclCallKind kind) {
  return IsDeviceWork(kind) && kind != AclCallKind::kValueWait && kind != AclCallKind::kModelBranch;
}
inline bool IsCopy(AclCallKind kind) { return FactsOf(kind).copy; }
inline bool IsPlaneCopy(AclCallKind kind) { return FactsOf(kind).plane; }

}  // namespace acltape::analyzer
