// A script: one experiment on a device, written down. Memory, values and operations in the order of
// issue, in terms of the ACL interface alone and without addresses, so that the same script can be
// run in this process (run_script.h) and printed as a C++ program that shows what it showed here
// (emit_cpp.h).
//
// Memory is named by block and offset. Tensors of a launch are analyzer::LoweredTensor whose
// buffer_id is the number of a block and whose layout.byte_offset leads to element 0 from the
// block's begin.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "analyzer/lowering/lowering.h"
#include "replayer/contents.h"
#include "storage/trace.h"

namespace acltape::replayer {

// A byte of device memory of the script.
struct Spot {
  int block = 0;
  int64_t offset = 0;
  bool operator==(const Spot&) const = default;
};

struct ScriptBlock {
  std::string name;  // "home", "graph", "workspace 1": for messages and names in emitted code
  int64_t bytes = 0;
  int fill = 0;  // every byte has this value before the first operation
};

// Bytes that the host brings. Loaded when an operation needs them, so that a script of a large
// trace stays small; `load` may be called more than once and gives the same bytes each time.
struct ScriptContent {
  std::string name;  // "call 812 self": for emitted code
  int64_t bytes = 0;
  std::function<Bytes()> load;
};

// What is looked at: a tensor of a call, where the script leaves it.
struct ScriptOutput {
  int64_t call_id = 0;  // in the step that is executed
  int64_t leaf = 0;     // its index in the program
  int write = 0;        // index in LeafUses::writes
  Spot spot;            // element 0
  storage::Layout layout;
};

// Operations. `stream` 0 is the device's own, others are side streams; events, graphs and groups
// are numbered from 0 and made when first used.
struct UploadTo {
  Spot to;
  int content = 0;
  int64_t content_offset = 0;
  int64_t bytes = 0;
};
// A recorded result of a strided tensor: elements in row-major order to their places, the bytes
// between them kept.
struct UploadStrided {
  Spot to;  // element 0
  storage::Layout layout;
  int content = 0;
};
struct CopyBytes {
  Spot to;
  Spot from;
  int64_t bytes = 0;
  int stream = 0;
  int64_t call_id = 0;  // in a capture: of the launch right behind or before it
};
struct FillBytes {
  Spot to;
  int value = 0;
  int64_t bytes = 0;
  int stream = 0;
  int64_t call_id = 0;  // as of CopyBytes
};
struct Launch {
  int64_t call_id = 0;  // that it is lowered from
  analyzer::Invocation invocation;
  int workspace = 0;  // block that the operator may use as workspace
  int64_t workspace_offset = 0;
  int stream = 0;
};
struct RecordEvent {
  int event = 0;
  int stream = 0;
};
struct WaitEvent {
  int event = 0;
  int stream = 0;
};
// Begins on stream 0 what EndCapture makes the graph of this number.
struct BeginCapture {
  int graph = 0;
  int mode = 0;  // aclmdlRICaptureMode
};
struct EndCapture {
  int graph = 0;
};
struct ExecuteGraph {
  int graph = 0;
  int stream = 0;
};
// Around launches of a capture: task groups, whose arguments can be updated.
struct BeginGroup {
  int group = 0;
  int stream = 0;
};
struct EndGroup {
  int group = 0;
  int stream = 0;
};
// Around launches that replace those of the group (rules UPD-01 to UPD-07).
struct BeginUpdate {
  int group = 0;
  int stream = 0;
};
struct EndUpdate {
  int group = 0;
  int stream = 0;
};
// Leaves the tasks of these calls out of the graph from now on (aclmdlRITaskDisable).
struct DisableCalls {
  int graph = 0;
  std::vector<int64_t> calls;
};
// Allocates and frees device memory, `bytes` in pieces: an allocator at work between replays.
struct ChurnMemory {
  int64_t bytes = 0;
  uint64_t seed = 0;
};
// Waits for every stream.
struct SynchronizeAll {};
// Takes what the outputs [first, end) hold as observation number `observation` of the script.
struct Observe {
  int observation = 0;
  int first = 0;
  int end = 0;
};

using Operation =
    std::variant<UploadTo, UploadStrided, CopyBytes, FillBytes, Launch, RecordEvent, WaitEvent,
                 BeginCapture, EndCapture, ExecuteGraph, BeginGroup, EndGroup, BeginUpdate,
                 EndUpdate, DisableCalls, ChurnMemory, SynchronizeAll, Observe>;

// One execution of the step that is looked at.
struct Observation {
  size_t match = 0;  // of the step class
  int64_t step = 0;  // as numbered in the trace
  int first = 0;     // its outputs in Script::outputs
  int end = 0;
};

struct Script {
  std::vector<ScriptBlock> blocks;
  std::vector<ScriptContent> contents;
  std::vector<Operation> operations;
  std::vector<ScriptOutput> outputs;
  std::vector<Observation> observations;
  int streams = 1;
  int events = 0;
  int graphs = 0;
  int groups = 0;
};

}  // namespace acltape::replayer
