#include "analyzer/program/program.h"

#include <algorithm>
#include <set>
#include <unordered_map>

#include "analyzer/calls/host_work.h"
#include "analyzer/program/acl_leaves.h"
#include "analyzer/program/arrivals.h"
#include "analyzer/steps/steps.h"
#include "storage/process_choice.h"

namespace acltape::analyzer {
namespace {

using storage::Argument;
using storage::TensorRef;
using storage::ValueKind;

void NoteBuffers(Program& program, const Leaf& leaf) {
  const auto extend = [&](const TensorRef& tensor) -> BufferUse* {
    if (tensor.buffer_id == 0) return nullptr;
    auto [entry, created] = program.buffers.try_emplace(tensor.buffer_id);
    BufferUse& use = entry->second;
    if (created) {
      const storage::Buffer& buffer = program.trace->GetBuffer(tensor.buffer_id);
      // A block of the ACL level may be a reserved range, far larger than what it holds.
      use.bytes = program.level == Level::kAcl ? std::min<int64_t>(buffer.bytes, 1) : buffer.bytes;
      if (buffer.alloc_call == 0) use.there_at_ns = buffer.alloc_ns;
      use.first_leaf = leaf.index;
    }
    use.last_leaf = leaf.index;
    return &use;
  };
  for (const Argument& argument : leaf.arguments) {
    if (!argument.HoldsTensors()) continue;
    for (const TensorRef& tensor : argument.tensors) {
      if (BufferUse* use = extend(tensor)) {
        use->bytes = std::max(use->bytes, program.LayoutOf(tensor).EndByte());
      }
    }
  }
  const auto note = [&](const TensorUse& tensor, bool write) {
    Access access;
    access.leaf = leaf.index;
    access.first_byte = tensor.layout->FirstByte();
    access.end_byte = tensor.layout->EndByte();
    access.write = write;
    program.buffers[tensor.tensor.buffer_id].accesses.push_back(access);
  };
  for (const TensorUse& use : program.uses[leaf.index].reads) note(use, false);
  for (const TensorUse& use : program.uses[leaf.index].writes) note(use, true);
  for (const storage::Snapshot& snapshot : leaf.before) {
    BufferUse* use = extend(snapshot.tensor);
    if (use != nullptr) {
      use->bytes = std::max(use->bytes, FirstByteOf(program, snapshot) + snapshot.bytes);
    }
  }
}

}  // namespace

LeafUses UsesOf(const Program& program, const Leaf& leaf) {
  LeafUses uses;
  for (const ArgumentUse& found : UsesOfLeaf(*leaf.op, leaf.kind, leaf.arguments)) {
    TensorUse use;
    use.argument = found.argument;
    use.element = found.element;
    use.tensor = leaf.arguments[found.argument].tensors[found.element];
    use.layout = &program.LayoutOf(use.tensor);
    (found.write ? uses.writes : uses.reads).push_back(use);
  }
  return uses;
}

const Argument* Leaf::Find(std::string_view name) const {
  for (const Argument& argument : arguments) {
    if (argument.name == name) return &argument;
  }
  return nullptr;
}

std::string Program::Describe(int64_t leaf) const { return work.Describe(leaf); }

std::shared_ptr<const std::vector<uint8_t>> Program::Payload(const std::string& digest) const {
  const auto own = own_payloads.find(digest);
  if (own != own_payloads.end()) return own->second;
  if (!trace->HasPayload(digest)) return nullptr;
  return std::make_shared<const std::vector<uint8_t>>(trace->Payload(digest));
}

void Complete(Program& program) {
  program.uses.resize(program.leaves.size());
  for (const Leaf& leaf : program.leaves) {
    program.uses[leaf.index] = UsesOf(program, leaf);
    NoteBuffers(program, leaf);
  }
  for (size_t s = 0; s < program.work.steps.size(); ++s) {
    const StepRange& range = program.work.steps[s];
    for (int64_t leaf = range.first; leaf < range.end; ++leaf) {
      program.leaves[leaf].step_index = static_cast<int64_t>(s);
    }
  }
}

Program LoadProgram(const storage::Reader& trace, storage::Results* results) {
  Work work = LoadWork(trace);
  AssignSteps(work, results);
  if (work.dialect == Dialect::kAcl) return LoadAclLeaves(work);
  Program program;
  program.trace = &trace;
  program.work = std::move(work);
  const std::set<int64_t> left_out = storage::ThreadsLeftOut(trace);
  const HostWork host(trace);
  for (storage::Call& call : trace.Calls(/*leaves_only=*/true)) {
    if (left_out.contains(call.thread_id)) continue;
    const storage::Op& op = trace.GetOp(call.op_id);
    if (!IsLeafDialect(op.dialect) || host.Has(call)) continue;
    Leaf& leaf = program.leaves.emplace_back();
    leaf.index = static_cast<int64_t>(program.leaves.size()) - 1;
    leaf.op = &op;
    leaf.kind = program.work.form(leaf.index).kind;
    leaf.arguments = trace.Arguments(call);
    leaf.call = std::move(call);
  }
  for (storage::Snapshot& snapshot : trace.Snapshots()) {
    const int64_t index = program.work.Find(snapshot.call_id);
    if (index < 0) continue;
    Leaf& leaf = program.leaves[index];
    (snapshot.after ? leaf.after : leaf.before).push_back(std::move(snapshot));
  }
  AddArrivals(program);
  Complete(program);
  return program;
}

int64_t FirstByteOf(const Program& program, const storage::Snapshot& content) {
  return program.LayoutOf(content.tensor).FirstByte();
}

const storage::Snapshot* RecordedResult(const Leaf& leaf, const TensorUse& use) {
  const Argument& argument = leaf.arguments[use.argument];
  const storage::Snapshot* by_position = nullptr;
  for (const storage::Snapshot& snapshot : leaf.after) {
    if (snapshot.position != argument.position) continue;
    if (snapshot.tensor.buffer_id == use.tensor.buffer_id &&
        snapshot.tensor.layout_id == use.tensor.layout_id) {
      return &snapshot;
    }
    by_position = &snapshot;
  }
  return argument.kind == ValueKind::kTensor ? by_position : nullptr;
}

}  // namespace acltape::analyzer
