#include "replayer/engine/lowered_program.h"

#include <algorithm>

#include "analyzer/calls/acl_calls.h"
#include "analyzer/program/missing_values.h"
#include "meaning/acl_operators.h"
#include "replayer/device/memory_plan.h"
#include "storage/error.h"

namespace acltape::replayer {
namespace {

using analyzer::Leaf;

// Collects notes. Calls with the same finding share one note, at the first of them.
class NoteBook {
 public:
  void Add(const std::string& rule, const std::string& severity, int64_t call_id,
           const std::string& message) {
    auto [entry, created] = notes_.try_emplace({rule, message});
    if (created) {
      entry->second = {rule, severity, call_id,
                       0,    message,  rule == "LOWER-SUBSTITUTED" ? "reproduced" : "predicted"};
    }
    ++entry->second.count;
  }

  std::vector<Note> Take() {
    std::vector<Note> notes;
    for (auto& [key, note] : notes_) notes.push_back(std::move(note));
    std::sort(notes.begin(), notes.end(),
              [](const Note& a, const Note& b) { return a.call_id < b.call_id; });
    return notes;
  }

 private:
  std::map<std::pair<std::string, std::string>, Note> notes_;
};

void RequireRecordedResults(const analyzer::Program& program, const Leaf& leaf, Contents& contents,
                            const std::string& why) {
  for (const analyzer::TensorUse& use : program.uses[leaf.index].writes) {
    if (use.layout->ElementCount() == 0) continue;
    const storage::Snapshot* snapshot = analyzer::RecordedResult(leaf, use);
    if ((snapshot != nullptr && snapshot->has_payload) || contents.synthetic()) continue;
    throw Error(ErrorKind::kTrace,
                "operator " + leaf.Name() + " (call " + std::to_string(leaf.call.call_id) +
                    ") cannot be replayed: " + why + ", and its results were not recorded; " +
                    analyzer::HowToHaveResult(program, leaf.index));
  }
}

// Why nobody can compute the results of a source again.
const char* WhyRecorded(const storage::Op& op) {
  if (op.dialect == analyzer::kOpaqueDialect) return "its computation is not known";
  const analyzer::AclCallKind kind = analyzer::FindAclFunction(op.name).kind;
  if (kind == analyzer::AclCallKind::kCollective || meaning::Communicates(op.name)) {
    return "its values come from other ranks";
  }
  return "its values are random";
}

}  // namespace

LoweredProgram LowerProgram(const analyzer::Program& program, Contents& contents,
                            const std::map<std::string, std::string>& refused) {
  LoweredProgram lowered;
  lowered.program = &program;
  lowered.lowerings.resize(program.leaves.size());
  NoteBook notes;
  for (const Leaf& leaf : program.leaves) {
    if (leaf.kind == analyzer::LeafKind::kSource) {
      RequireRecordedResults(program, leaf, contents, WhyRecorded(*leaf.op));
      continue;
    }
    if (leaf.kind != analyzer::LeafKind::kKernel) continue;
    std::string why;
    const auto refusal = refused.find(leaf.Name());
    std::optional<analyzer::lowering::Lowering> lowering;
    if (refusal != refused.end()) {
      why = refusal->second;
    } else {
      lowering = analyzer::lowering::Lower(program, leaf, &why);
    }
    if (!lowering) {
      RequireRecordedResults(program, leaf, contents, why);
      lowered.substituted[leaf.index] = why;
      notes.Add("LOWER-SUBSTITUTED", "notice", leaf.call.call_id,
                leaf.Name() + " is replaced by its recorded results: " + why);
      continue;
    }
    if (lowering->note) {
      notes.Add(lowering->note->rule, "notice", leaf.call.call_id,
                leaf.Name() + ": " + lowering->note->message);
    }
    int64_t temporary_bytes = 0;
    for (const int64_t bytes : lowering->temporaries) temporary_bytes += AlignUp(bytes);
    lowered.temporary_bytes = std::max(lowered.temporary_bytes, temporary_bytes);
    lowered.device_calls += static_cast<int64_t>(lowering->invocations.size());
    lowered.lowerings[leaf.index] = std::move(*lowering);
  }
  for (const auto& [name, calls] : program.left_out) {
    for (const int64_t call : calls) {
      notes.Add("REPLAY-LEFT-OUT", "notice", call,
                name + " is left out: what it does is not in the trace");
    }
  }
  lowered.notes = notes.Take();
  return lowered;
}

}  // namespace acltape::replayer
