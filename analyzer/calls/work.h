// The work of a trace in compact form: what the program's leaves (aten) or its calls of the C
// interface (ACL) do. It takes some 80 bytes per call, so that a trace of a million calls fits in
// memory. Everything that calls of one form share (operator, scalars, layouts, tensors that are
// read and written) is kept once.
//
//   const Work work = LoadWork(reader);
//   for (size_t i = 0; i < work.size(); ++i) {
//     work.VisitAccesses(i, [&](const ByteAccess& access) { ... });
//   }
//
// A program (analyzer/program/program.h) adds what replays need: arguments, contents, uses of
// buffers.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "analyzer/calls/acl_calls.h"
#include "analyzer/calls/leaf_kind.h"
#include "analyzer/calls/uses.h"
#include "storage/reader.h"

namespace acltape::analyzer {

// The kind of a work's entries.
enum class Dialect : uint8_t {
  kAten,  // leaves of PyTorch's dispatcher, one after the other
  kAcl,   // calls of the C interface, ordered by streams, events and host waits
  // Device work of an ACL program, one after the other (analyzer/program/acl_leaves.h).
  kAclLeaves
};

// A tensor of a form: the slot of the call's buffers in which it lies, and its use.
struct FormAccess {
  int32_t slot = 0;
  int32_t argument = 0;  // index in WorkForm::arguments
  int32_t element = 0;   // index in a tensor list
  bool write = false;    // false: it is read
  bool strided = false;  // true: some bytes between the first and the last are not its own
  int64_t first_byte = 0;
  int64_t end_byte = 0;
  const storage::Layout* layout = nullptr;  // owned by the reader
};

// A form is everything that calls share that have one signature and the same equalities among their
// buffers.
struct WorkForm {
  int64_t signature_id = 0;
  const storage::Op* op = nullptr;  // owned by the reader
  // ACL calls have kKernel if they are operators, copies, fills or value writes, else kView.
  LeafKind kind = LeafKind::kView;
  const AclFunction* function = nullptr;  // only for ACL calls
  // Owned by the reader.
  const std::vector<storage::SignatureArgument>* arguments = nullptr;
  std::vector<FormAccess> accesses;

  AclCallKind acl_kind() const { return function ? function->kind : AclCallKind::kUnknown; }
  AclVariant acl_variant() const { return function ? function->variant : AclVariant::kNone; }
  // The integer at a position of the C declaration (an event, a model, flags); 0 if there is none.
  int64_t Integer(int position) const;
  // True if it reads or writes bytes: a kernel, a source or a host read.
  bool active() const { return kind >= LeafKind::kSource; }
};

struct WorkCall {
  int64_t call_id = 0;
  int64_t parent_id = 0;
  int64_t begin_ns = 0;
  int64_t duration_ns = 0;  // the host's; Work::held has that of work in a graph
  int64_t stream_id = 0;    // 0: none (aten, and calls without a stream)
  int64_t model_id = 0;     // the capture that stored its task, 0: none
  int32_t form = 0;
  int32_t thread = 0;
  int32_t step = -1;  // as numbered in the trace; -1: outside of steps
  int32_t status = 0;
  int32_t scope = 0;
  storage::Phase phase = storage::Phase::kForward;
  uint32_t first_buffer = 0;  // index in Work::all_buffers
};

// An execution of a graph that the program captured itself.
struct GraphExecution {
  int64_t call_id = 0;
  int64_t signature_id = 0;
  int64_t model_id = 0;
  int64_t begin_ns = 0;  // begin of the executing call
  int64_t duration_ns = 0;
};

// The work of an entry that a graph of the program held when it ran.
struct HeldByGraph {
  int32_t execution = -1;   // index in Work::executions; -1: the entry was issued by itself
  bool first = false;       // the first entry of its execution
  int64_t captured_ns = 0;  // how long the host took to issue it while it was captured
};

// One iteration of the workload: calls [first, end) of the work, leaves [first, end) of a program.
struct StepRange {
  int64_t step = 0;  // as numbered in the trace
  int64_t first = 0;
  int64_t end = 0;
  std::string found_by;  // "range:NAME", "period"
  // The recorded calls with which it begins and ends. The step's time is theirs and of all between.
  int64_t first_call = 0;
  int64_t last_call = 0;
};

class Work {
 public:
  const storage::Reader* trace = nullptr;
  Dialect dialect = Dialect::kAten;
  std::vector<WorkCall> calls;  // in order of call_id; for kAclLeaves in an order of execution
  std::vector<WorkForm> forms;
  std::vector<StepRange> steps;  // those that the trace names; else empty until AssignSteps

  size_t size() const { return calls.size(); }
  const WorkForm& form(size_t call) const { return forms[calls[call].form]; }
  const storage::Op& op(size_t call) const { return *form(call).op; }
  // The buffers of the call's slots.
  std::span<const int64_t> buffers(size_t call) const {
    const size_t first = calls[call].first_buffer;
    const size_t end = call + 1 < calls.size() ? calls[call + 1].first_buffer : all_buffers.size();
    return {all_buffers.data() + first, end - first};
  }
  // Visits the byte ranges that the call reads and writes. A call that failed has none, and empty
  // ranges are left out.
  template <typename Visit>
  void VisitAccesses(size_t call, Visit&& visit) const {
    const std::span<const int64_t> slots = buffers(call);
    for (const FormAccess& access : form(call).accesses) {
      const int64_t buffer =
          static_cast<size_t>(access.slot) < slots.size() ? slots[access.slot] : 0;
      if (buffer == 0 || access.first_byte >= access.end_byte) continue;
      visit(ByteAccess{buffer, access.first_byte, access.end_byte, access.write, &access});
    }
  }
  // The index of a call; -1 when it is not work of this program.
  int64_t Find(int64_t call_id) const;
  // The places [first, second) of calls [first_call, last_call]; for kAclLeaves of the work that
  // these calls issued. Work that had to wait counts at the place where it ran.
  std::pair<int64_t, int64_t> Between(int64_t first_call, int64_t last_call) const;
  // Adds a step and marks its calls. An empty one is left out. A step that does not say its calls
  // has those of its first and its last entry.
  void AddStep(StepRange step);
  // "call 812 aten::cat" for messages.
  std::string Describe(size_t call) const;

  std::vector<int64_t> all_buffers;
  // Only for kAclLeaves. issued_by has for each entry the latest call that issued this entry or an
  // earlier one. place_of_id finds an entry by its id, because ids do not ascend.
  std::vector<int64_t> issued_by;
  std::unordered_map<int64_t, size_t> place_of_id;
  // Only for kAclLeaves. An entry that a graph of the program held has the times of the host's call
  // that executed the graph: the first entry of an execution all of them, the others none. So sums
  // over entries are what the host spent.
  std::vector<GraphExecution> executions;
  std::vector<HeldByGraph> held;  // by entry

  // The execution in which the entry ran; null if it was issued by itself.
  const GraphExecution* ExecutionOf(size_t call) const {
    if (call >= held.size() || held[call].execution < 0) return nullptr;
    return &executions[held[call].execution];
  }
};

// Loads the leaves of an aten trace, or the outermost ACL calls of a trace without leaves. The
// reader must outlive the work. Throws Error kTrace, one sentence, when the trace has neither.
Work LoadWork(const storage::Reader& trace);

}  // namespace acltape::analyzer
