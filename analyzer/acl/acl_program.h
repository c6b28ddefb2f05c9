// The ACL program of a trace: its calls of the C interface with arguments, the buffers that they
// touch, the graphs that it captured, and the recorded contents.
//
// Calls are in an order in which one thread can issue them again. This is the order of call_id,
// except that a call in which the host waited comes after the calls that other threads began during
// the wait.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "analyzer/calls/acl_calls.h"
#include "analyzer/calls/acl_uses.h"
#include "analyzer/calls/byte_set.h"
#include "analyzer/calls/event_kinds.h"
#include "analyzer/calls/uses.h"
#include "meaning/recorded_values.h"
#include "storage/reader.h"

namespace acltape::analyzer {

using meaning::kConditionOfTask;
using meaning::kFirstSubGraph;
using meaning::kTypeOfTask;

// The fate of a call in a replay.
enum class AclFate : uint8_t {
  kIssued,
  kFailed,     // it failed in the recording and had no effect
  kAbandoned,  // part of a capture or an update that did not end well
  kForeign,    // it waits for what another process does
};

struct AclCall {
  int64_t index = 0;  // position in AclProgram::calls
  storage::Call call;
  const storage::Op* op = nullptr;        // owned by the reader
  const AclFunction* function = nullptr;  // row of the function table
  std::vector<storage::Argument> arguments;
  std::vector<storage::Snapshot> before;
  std::vector<storage::Snapshot> after;
  std::vector<TensorUse> reads;  // device work only: operators, copies, fills, value writes
  std::vector<TensorUse> writes;
  int64_t step = -1;  // as numbered in the trace
  int64_t form = 0;   // equal for calls with the same function, numbers and layouts
  // Index in AclProgram::groups of the group that it begins, ends, fills or updates; -1: none.
  int64_t group = -1;
  AclFate fate = AclFate::kIssued;
  // True for an operator that exchanges data with other ranks (meaning/acl_operators.h).
  bool communicates = false;
  // True for work of a stream that failed later. Nobody knows what it wrote.
  bool suspect = false;

  AclCallKind kind() const { return function->kind; }
  int64_t stream() const { return call.stream_id; }
  // True if what it writes comes from other ranks: a collective, a message, or an operator that
  // communicates.
  bool TakesFromRanks() const { return communicates || kind() == AclCallKind::kCollective; }
  // True for an asynchronous copy with host memory that is not pinned. The host waits for the
  // stream, then for the copy (rule CPY-06).
  bool IsPageableCopy() const;
  // True if the call puts work on its stream that runs there in order, or executes a graph there.
  // False inside of captures and updates, and for calls that make the host wait.
  bool RunsOnItsStream() const;
  // The integer at a position of the C declaration; 0 if there is none.
  int64_t Integer(int position) const;
  // The tensor at a position, or an element of a list; null if the argument is not a buffer.
  const TensorUse* Use(int position, int element = 0) const;
  // The recorded content of the argument before the call; null if none was kept.
  const storage::Snapshot* Before(int position) const;
};

// True for a collective in a graph that receives something. Each execution received something else
// from the other ranks, which a recording does not have.
inline bool IsCapturedCollective(const AclCall& call) {
  return call.TakesFromRanks() && call.call.model_id != 0 && !call.writes.empty();
}

struct AclBuffer {
  int64_t bytes = 0;
  bool host = false;  // pinned host memory
  // The bytes that calls name. A reserved range is far larger than what it holds.
  ByteSet touched;
  // Call indices in order. A captured use counts where its graph runs.
  std::vector<int64_t> uses;
};

// A graph that the program captured or built.
struct AclModel {
  int64_t model_id = 0;
  std::vector<int64_t> calls;  // indices of the calls that it stored, in order
  int64_t executions = 0;
  int64_t origin = 0;  // the stream on which its capture began; 0: it was built
  // The graph whose conditional task runs this one; 0: it is executed by itself.
  int64_t parent = 0;
  std::vector<int64_t> sub_graphs;  // in order of creation
  // True if the device chooses at each execution which of the calls run: the model has a
  // conditional task, or a switch of labels or streams.
  bool branches = false;
};

// The tasks of a model whose arguments the program updates.
struct AclGroup {
  int64_t model_id = 0;
  std::vector<int64_t> calls;  // indices of the launches between begin and end of the group
};

struct AclProgram {
  const storage::Reader* trace = nullptr;
  std::vector<AclCall> calls;
  std::map<int64_t, AclBuffer> buffers;  // buffers that device work touches
  std::map<int64_t, AclModel> models;    // graphs whose capture ended well
  std::vector<AclGroup> groups;
  std::map<int64_t, int64_t> cells;  // buffer of a condition's cell to the call that made it
  std::set<int64_t> bound_streams;   // streams that are bound to built models
  // Indices of waits for a value that no recorded call writes. A replay leaves them out.
  std::set<int64_t> unreleased_waits;
  std::unordered_map<int64_t, storage::Handle> streams;
  EventKinds event_kinds;
  // True if device work may wait for something that the host does later (external events, value
  // waits). The host must then not wait for a stream where the program did not.
  bool waits_for_later_work = false;
  bool has_results = false;  // some call has a recorded content after it
  // Codes with which device work failed in the recording. A replay gets them again.
  std::set<int32_t> task_errors;
  int64_t devices = 0;
  int64_t threads = 0;

  // The stored calls of a graph and of its sub-graphs. Empty if the trace does not hold the graph.
  std::vector<int64_t> StoredCalls(int64_t model_id) const;
  // The stored calls that every execution of the graph runs.
  std::vector<int64_t> CertainCalls(int64_t model_id) const;
  // "call 812 aclnnAdd" for messages.
  std::string Describe(const AclCall& call) const;
  // True if the event of a record, wait or reset was created as an external one (rule EVT-19). A
  // graph does not replace such an event by one of its own.
  bool HasExternalEvent(const AclCall& call) const;
  // True if a record, wait or reset of an event reaches beyond the graph that holds it.
  bool IsExternal(const AclCall& call) const;
};

// Loads the program. The reader must outlive it. Throws Error kTrace when the trace has no call of
// the ACL level.
AclProgram LoadAclProgram(const storage::Reader& trace);

// Adds snapshots without a digest for the results of each call of a trace without recorded results.
// Two replays can then be compared with each other.
void NameResults(AclProgram& program);

// Throws Error kTrace, one sentence, when a replay would lack contents: arguments of operators,
// copies from the host, or buffers that device work reads before a recorded call wrote them.
void CheckContents(const AclProgram& program);

}  // namespace acltape::analyzer
