#include "analyzer/program/roles.h"

#include <set>
#include <string>

#include "storage/results.h"

namespace acltape::analyzer {
namespace {

// The properties of a buffer after a walk over the leaves.
struct BufferUses {
  bool parameter = false;
  bool first_is_read = false;
  bool first_is_source = false;
  bool touched = false;
  bool read_by_leaf = false;
  bool read_by_host = false;
  std::set<int64_t> written_in;  // steps, -1 outside
  std::set<int64_t> read_in;
};

bool IsState(const BufferUses& uses) {
  std::set<int64_t> steps = uses.written_in;
  steps.erase(-1);
  if (steps.size() > 1) return true;
  return steps.size() == 1 && !uses.read_in.empty() && *uses.read_in.rbegin() > *steps.begin();
}

// A value that was made once, before the steps, and that several steps read: a weight of a program
// that does not train it.
bool IsMadeOnceForSteps(const BufferUses& uses) {
  std::set<int64_t> steps = uses.read_in;
  steps.erase(-1);
  return steps.size() > 1 && !uses.first_is_read && uses.written_in == std::set<int64_t>{-1};
}

BufferRole RoleOf(const BufferUses& uses) {
  if (uses.parameter) return BufferRole::kParameter;
  if (IsState(uses)) return BufferRole::kState;
  if (IsMadeOnceForSteps(uses)) return BufferRole::kParameter;
  if (uses.first_is_read || uses.first_is_source) return BufferRole::kInput;
  if (uses.read_by_host && !uses.read_by_leaf) return BufferRole::kHost;
  if (!uses.read_by_leaf) return BufferRole::kOutput;
  return BufferRole::kActivation;
}

}  // namespace

std::string_view BufferRoleName(BufferRole role) {
  constexpr std::string_view kNames[] = {"parameter", "state",  "input",
                                         "host",      "output", "activation"};
  return kNames[static_cast<size_t>(role)];
}

std::map<int64_t, BufferRole> ClassifyBuffers(const Program& program) {
  std::map<int64_t, BufferUses> uses_of;
  for (const Leaf& leaf : program.leaves) {
    const LeafUses& leaf_uses = program.uses[leaf.index];
    for (const TensorUse& use : leaf_uses.reads) {
      BufferUses& uses = uses_of[use.tensor.buffer_id];
      uses.parameter = uses.parameter || (use.layout->flags & meaning::kTensorParameter) != 0;
      if (!uses.touched) uses.first_is_read = true;
      uses.touched = true;
      (leaf.kind == LeafKind::kHostRead ? uses.read_by_host : uses.read_by_leaf) = true;
      uses.read_in.insert(leaf.step_index);
    }
    for (const TensorUse& use : leaf_uses.writes) {
      BufferUses& uses = uses_of[use.tensor.buffer_id];
      uses.parameter = uses.parameter || (use.layout->flags & meaning::kTensorParameter) != 0;
      if (!uses.touched) uses.first_is_source = leaf.kind == LeafKind::kSource;
      uses.touched = true;
      uses.written_in.insert(leaf.step_index);
    }
  }
  // A weight is told by its own tensor, which often only a view takes: a product reads the
  // transposed one.
  for (const Leaf& leaf : program.leaves) {
    for (const storage::Argument& argument : leaf.arguments) {
      for (const storage::TensorRef& tensor : argument.tensors) {
        const auto uses = uses_of.find(tensor.buffer_id);
        if (uses == uses_of.end() || tensor.layout_id == 0) continue;
        if ((program.LayoutOf(tensor).flags & meaning::kTensorParameter) != 0) {
          uses->second.parameter = true;
        }
      }
    }
  }
  std::map<int64_t, BufferRole> roles;
  for (const auto& [id, uses] : uses_of) roles[id] = RoleOf(uses);
  return roles;
}

void WriteRoles(const std::map<int64_t, BufferRole>& roles, storage::Results& results) {
  for (const auto& [id, role] : roles) {
    results.SetBufferRole(id, std::string(BufferRoleName(role)));
  }
}

}  // namespace acltape::analyzer
