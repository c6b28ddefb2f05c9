// The ACL program of a trace: its calls of the C interface with arguments, the buffers they touch,
// the graphs it captured, and what the trace knows of contents.
//
// Calls are in the order in which one thread can issue them again: by call_id, except that a call
// in which the host waited comes behind what other threads began while it waited.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analyzer/acl_calls.h"
#include "analyzer/byte_set.h"
#include "storage/reader.h"

namespace acltape::analyzer {

// What becomes of a call in a replay.
enum class AclFate : uint8_t {
  kIssued,
  kFailed,     // it failed in the recording and had no effect
  kAbandoned,  // part of a capture or an update that never came to a good end
};

// A tensor of a call: a layout over a buffer.
struct AclUse {
  int argument = 0;
  storage::TensorRef tensor;
  const storage::Layout* layout = nullptr;  // owned by the reader
};

struct AclCall {
  int64_t index = 0;  // position in AclProgram::calls
  storage::Call call;
  const storage::Op* op = nullptr;        // owned by the reader
  const AclFunction* function = nullptr;  // its row in the table
  std::vector<storage::Argument> arguments;
  std::vector<storage::Snapshot> before;
  std::vector<storage::Snapshot> after;
  std::vector<AclUse> reads;  // device work only: operators, copies, fills, value writes
  std::vector<AclUse> writes;
  int64_t step = -1;   // as numbered in the trace
  int64_t form = 0;    // equal for calls with the same function, numbers and layouts
  int64_t group = -1;  // index in AclProgram::groups: which group it begins, ends, fills or updates
  AclFate fate = AclFate::kIssued;
  // Work of a stream that was then found to have failed: what it wrote is not known.
  bool suspect = false;

  AclCallKind kind() const { return function->kind; }
  int64_t stream() const { return call.stream_id; }
  // The integer at a position of the C declaration; 0 where there is none.
  int64_t Integer(int position) const;
  // The tensor at a position; null where the argument is no buffer.
  const AclUse* Use(int position) const;
  // The recorded content of the argument before the call; null when none was kept.
  const storage::Snapshot* Before(int position) const;
};

struct AclBuffer {
  int64_t bytes = 0;
  bool host = false;          // pinned host memory
  std::vector<int64_t> uses;  // call indices in order; captured uses count where the graph runs
};

// A graph that the program captured.
struct AclModel {
  int64_t model_id = 0;
  std::vector<int64_t> calls;  // indices of the calls that it stored, in order
  int64_t executions = 0;
};

// Tasks of a model whose arguments the program updates.
struct AclGroup {
  int64_t model_id = 0;
  std::vector<int64_t> calls;  // indices of the launches between begin and end of the group
};

struct AclProgram {
  const storage::Reader* trace = nullptr;
  std::vector<AclCall> calls;
  std::map<int64_t, AclBuffer> buffers;  // those that device work touches
  std::map<int64_t, AclModel> models;    // those that came to a good end
  std::vector<AclGroup> groups;
  std::unordered_map<int64_t, storage::Handle> streams;
  std::unordered_map<int64_t, storage::Handle> events;
  // Device work may wait for something that the host does only later (external events, value
  // waits): the host must not wait for a stream where the program did not.
  bool waits_for_later_work = false;
  bool has_results = false;  // some call has a recorded content after it
  // Codes with which device work failed in the recording; a replay meets them again.
  std::set<int32_t> task_errors;
  int64_t devices = 0;
  int64_t processes = 0;
  int64_t threads = 0;

  // "call 812 aclnnAdd" for messages.
  std::string Describe(const AclCall& call) const;
};

bool IsAclDialect(std::string_view dialect);
// Arguments that say nothing about the work itself: executor and workspace.
bool IsIncidental(const storage::Argument& argument);

// Whether the level that ChooseLevel takes is that of the ACL interface.
bool IsAclProgram(const storage::Reader& trace);

// Loads the program; the reader must outlive it. Throws Error kTrace when the trace has no call of
// the ACL level.
AclProgram LoadAclProgram(const storage::Reader& trace);

// For a trace without recorded results: names what each call of work leaves, as snapshots without a
// digest, so that two replays can be compared with each other.
void NameResults(AclProgram& program);

// Throws Error kTrace, one sentence, when a replay would lack contents: arguments of operators,
// copies from the host, and buffers that device work reads before any recorded call wrote them.
void CheckContents(const AclProgram& program);

}  // namespace acltape::analyzer
