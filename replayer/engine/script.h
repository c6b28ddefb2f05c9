// A script: work on a device, written down as memory, values and operations in the order of issue.
// It uses only terms of the ACL interface and no addresses. Replays and experiments are written as
// scripts, and one machine carries them out (script_machine.h). A script can also be printed as a
// C++ program that shows the same result (reproducer/emit_cpp.h).
//
// Memory is named by block and offset. A tensor of a launch is an analyzer::LoweredTensor: its
// memory is a block, and its layout.byte_offset is the offset of element 0 in the block.
#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "analyzer/lowering/lowering.h"
#include "replayer/values/contents.h"
#include "storage/trace.h"

namespace acltape::replayer {

// One byte of the script's device memory, named by block and offset.
struct Spot {
  int block = 0;
  int64_t offset = 0;
  auto operator<=>(const Spot&) const = default;
  Spot operator+(int64_t bytes) const { return {block, offset + bytes}; }
};

struct ScriptBlock {
  std::string name;  // "home", "graph", "workspace 1": for messages and names in emitted code
  int64_t bytes = 0;
  // Every byte has this value before the first operation.
  int fill = 0;
  static constexpr int kNoFill = -1;  // the bytes are those that the allocation gives
};

// Bytes that the host uploads. They are loaded when an operation needs them, so that a script stays
// small. `load` may be called several times and returns the same bytes each time.
struct ScriptContent {
  std::string name;  // "call 812 self": for emitted code
  int64_t bytes = 0;
  std::function<Bytes()> load;
};

// An output that is compared: a tensor of a call, at the place where the script leaves it. Or a
// value that the host reads.
struct ScriptOutput {
  int64_t call_id = 0;  // in the step that is executed
  int64_t leaf = 0;     // its index in the program; in a step of a class its place there
  int write = 0;        // index in LeafUses::writes; -1: the host reads it
  Spot spot;            // element 0
  storage::Layout layout;
};

// A call of an operator. Several operations can launch it.
struct ScriptCall {
  int64_t call_id = 0;  // the call that it was lowered from
  std::string name;     // name of that call's operator, for messages
  analyzer::lowering::Invocation invocation;
  int workspace = 0;  // block that the operator may use as workspace
  int64_t workspace_offset = 0;
};

// The operations follow. Stream 0 is the device's own; others are side streams. Events, graphs and
// groups are numbered from 0 and created at the first use.
struct UploadTo {
  Spot to;
  int content = 0;
  int64_t content_offset = 0;
  int64_t bytes = 0;
};
// Makes the uploads [first, end) of Script::pieces as one copy of `bytes` to `to`. The pieces lie
// in this range, and what lies between them is padding.
struct UploadTogether {
  Spot to;
  int64_t bytes = 0;
  int first = 0;
  int end = 0;
};
// Uploads elements in row-major order to a strided tensor. The bytes between the elements keep
// their content.
struct UploadStrided {
  Spot to;                                  // element 0
  const storage::Layout* layout = nullptr;  // a layout of the program, which outlives the script
  int content = 0;
};
struct CopyBytes {
  Spot to;
  Spot from;
  int64_t bytes = 0;
  int stream = 0;
  int64_t call_id = 0;  // in a capture: the call that it belongs to
};
struct FillBytes {
  Spot to;
  int value = 0;
  int64_t bytes = 0;
  int stream = 0;
  int64_t call_id = 0;  // as in CopyBytes
};
struct Launch {
  int call = 0;  // index in Script::calls
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
// Begins a capture on stream 0. EndCapture turns it into the graph with this number.
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
// BeginGroup and EndGroup enclose launches in a capture: a task group, whose arguments can be
// updated.
struct BeginGroup {
  int group = 0;
  int stream = 0;
};
struct EndGroup {
  int group = 0;
  int stream = 0;
};
// BeginUpdate and EndUpdate enclose launches that replace those of the group (rules UPD-01 to
// UPD-07).
struct BeginUpdate {
  int group = 0;
  int stream = 0;
};
struct EndUpdate {
  int group = 0;
  int stream = 0;
};
// Disables the tasks of these calls in the graph from now on (aclmdlRITaskDisable).
struct DisableCalls {
  int graph = 0;
  std::vector<int64_t> calls;
};
// Allocates and frees `bytes` of device memory in pieces, as an allocator would between replays.
struct ChurnMemory {
  int64_t bytes = 0;
  uint64_t seed = 0;
};
// Waits for every stream.
struct SynchronizeAll {};
// Takes the contents of the outputs [first, end) as observation `observation` of the script.
struct Observe {
  int observation = 0;
  int first = 0;
  int end = 0;
};
// The host reads an output and waits for it.
struct ReadOnHost {
  int observation = 0;
  int output = 0;
};

using Operation = std::variant<UploadTo, UploadTogether, UploadStrided, CopyBytes, FillBytes,
                               Launch, RecordEvent, WaitEvent, BeginCapture, EndCapture,
                               ExecuteGraph, BeginGroup, EndGroup, BeginUpdate, EndUpdate,
                               DisableCalls, ChurnMemory, SynchronizeAll, Observe, ReadOnHost>;

// One execution of the step whose outputs are taken.
struct Observation {
  size_t match = 0;  // index of the step in its class
  int64_t step = 0;  // as numbered in the trace
  int first = 0;     // its outputs in Script::outputs
  int end = 0;
};

struct Script {
  std::vector<ScriptBlock> blocks;
  std::vector<ScriptContent> contents;
  std::vector<ScriptCall> calls;
  std::vector<UploadTo> pieces;  // pieces of UploadTogether
  std::vector<Operation> operations;
  std::vector<ScriptOutput> outputs;
  std::vector<Observation> observations;
  int streams = 1;
  int events = 0;
  int graphs = 0;
  int groups = 0;
};

}  // namespace acltape::replayer
