#include "analyzer/program.h"

#include <algorithm>
#include <set>
#include <unordered_map>
#include <unordered_set>

namespace acltape::analyzer {
namespace {

using storage::Argument;
using storage::Direction;
using storage::TensorRef;
using storage::ValueKind;

// Leaves whose kind their arguments do not show, by name without overload.
struct NamedKind {
  std::string_view name;
  LeafKind kind;
};
constexpr NamedKind kNamedKinds[] = {
    {"aten::empty", LeafKind::kAllocation},
    {"aten::empty_strided", LeafKind::kAllocation},
    {"aten::empty_like", LeafKind::kAllocation},
    {"aten::new_empty", LeafKind::kAllocation},
    {"aten::new_empty_strided", LeafKind::kAllocation},
    {"aten::_empty_affine_quantized", LeafKind::kAllocation},
    {"aten::resize_", LeafKind::kAllocation},
    {"aten::resize_as_", LeafKind::kAllocation},
    {"aten::set_", LeafKind::kView},
    {"aten::detach_", LeafKind::kView},
    {"aten::as_strided_", LeafKind::kView},
    {"aten::squeeze_", LeafKind::kView},
    {"aten::unsqueeze_", LeafKind::kView},
    {"aten::t_", LeafKind::kView},
    {"aten::transpose_", LeafKind::kView},
    {"aten::requires_grad_", LeafKind::kView},
    {"aten::normal", LeafKind::kSource},
    {"aten::normal_", LeafKind::kSource},
    {"aten::uniform_", LeafKind::kSource},
    {"aten::random_", LeafKind::kSource},
    {"aten::exponential_", LeafKind::kSource},
    {"aten::geometric_", LeafKind::kSource},
    {"aten::cauchy_", LeafKind::kSource},
    {"aten::log_normal_", LeafKind::kSource},
    {"aten::bernoulli", LeafKind::kSource},
    {"aten::bernoulli_", LeafKind::kSource},
    {"aten::multinomial", LeafKind::kSource},
    {"aten::poisson", LeafKind::kSource},
    {"aten::binomial", LeafKind::kSource},
    {"aten::rand", LeafKind::kSource},
    {"aten::rand_like", LeafKind::kSource},
    {"aten::randn", LeafKind::kSource},
    {"aten::randn_like", LeafKind::kSource},
    {"aten::randint", LeafKind::kSource},
    {"aten::randint_like", LeafKind::kSource},
    {"aten::randperm", LeafKind::kSource},
    {"aten::dropout", LeafKind::kSource},
    {"aten::dropout_", LeafKind::kSource},
    {"aten::native_dropout", LeafKind::kSource},
    {"aten::rrelu_with_noise", LeafKind::kSource},
    {"aten::_standard_gamma", LeafKind::kSource},
    {"aten::_sample_dirichlet", LeafKind::kSource},
};

// Tensors that an operator writes only when its boolean argument `when` is true, whatever its
// schema or the recorder says.
struct ConditionalWrite {
  std::string_view name;
  std::string_view argument;
  std::string_view when;
};
constexpr ConditionalWrite kConditionalWrites[] = {
    {"aten::native_batch_norm", "running_mean", "training"},
    {"aten::native_batch_norm", "running_var", "training"},
};

bool Writes(const Leaf& leaf, const Argument& argument) {
  for (const ConditionalWrite& row : kConditionalWrites) {
    if (leaf.op->name != row.name || argument.name != row.argument) continue;
    const Argument* on = leaf.Find(row.when);
    return on != nullptr && on->integer != 0;
  }
  return argument.direction != Direction::kIn;
}

bool HoldsTensors(const Argument& argument) {
  return argument.kind == ValueKind::kTensor || argument.kind == ValueKind::kTensorList;
}

LeafKind KindOf(const Leaf& leaf) {
  if (leaf.call.status != 0) return LeafKind::kView;  // it threw: it has no effect to repeat
  for (const NamedKind& row : kNamedKinds) {
    if (leaf.op->name == row.name) return row.kind;
  }
  std::unordered_set<int64_t> inputs;
  bool writes = false;
  bool fresh = false;       // a result in storage of its own
  bool results = false;     // any tensor result
  bool host_value = false;  // a result that is no tensor
  for (const Argument& argument : leaf.arguments) {
    if (argument.direction != Direction::kOut && Writes(leaf, argument)) writes = true;
    if (argument.direction != Direction::kOut) {
      if (HoldsTensors(argument)) {
        for (const TensorRef& tensor : argument.tensors) inputs.insert(tensor.buffer_id);
      }
      continue;
    }
    if (!HoldsTensors(argument)) {
      host_value = host_value || argument.kind != ValueKind::kNone;
      continue;
    }
    for (const TensorRef& tensor : argument.tensors) {
      if (!tensor.defined()) continue;
      results = true;
      if (tensor.buffer_id != 0 && !inputs.count(tensor.buffer_id)) fresh = true;
    }
  }
  if (writes || fresh) return LeafKind::kKernel;
  if (host_value && !results && !inputs.empty()) return LeafKind::kHostRead;
  return LeafKind::kView;
}

LeafUses UsesOf(const Program& program, const Leaf& leaf) {
  LeafUses uses;
  if (leaf.kind == LeafKind::kView || leaf.kind == LeafKind::kAllocation) return uses;
  std::unordered_set<int64_t> inputs;
  for (const Argument& argument : leaf.arguments) {
    if (!HoldsTensors(argument)) continue;
    const bool written = Writes(leaf, argument);
    // A source overwrites what it is given; its recorded results replace the whole tensor.
    const bool read = argument.direction != Direction::kOut && !(leaf.kind == LeafKind::kSource);
    for (size_t i = 0; i < argument.tensors.size(); ++i) {
      const TensorRef& tensor = argument.tensors[i];
      if (tensor.buffer_id == 0) continue;
      TensorUse use;
      use.argument = static_cast<int>(&argument - leaf.arguments.data());
      use.element = static_cast<int>(i);
      use.tensor = tensor;
      use.layout = &program.LayoutOf(tensor);
      if (read) uses.reads.push_back(use);
      // A result in storage of an argument is a view of it, not something written.
      const bool view = argument.direction == Direction::kOut && inputs.count(tensor.buffer_id);
      if (written && !view) uses.writes.push_back(use);
      if (argument.direction == Direction::kIn) inputs.insert(tensor.buffer_id);
    }
  }
  return uses;
}

void NoteBuffers(Program& program, const Leaf& leaf) {
  const auto extend = [&](const TensorRef& tensor) -> BufferUse* {
    if (tensor.buffer_id == 0) return nullptr;
    auto [entry, created] = program.buffers.try_emplace(tensor.buffer_id);
    BufferUse& use = entry->second;
    if (created) {
      use.bytes = program.trace->GetBuffer(tensor.buffer_id).bytes;
      use.first_leaf = leaf.index;
    }
    use.last_leaf = leaf.index;
    return &use;
  };
  for (const Argument& argument : leaf.arguments) {
    if (!HoldsTensors(argument)) continue;
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
    if (BufferUse* use = extend(snapshot.tensor)) use->bytes = std::max(use->bytes, snapshot.bytes);
  }
}

}  // namespace

std::string_view LeafKindName(LeafKind kind) {
  constexpr std::string_view kNames[] = {"view", "allocation", "source", "host read", "kernel"};
  return kNames[static_cast<size_t>(kind)];
}

const Argument* Leaf::Find(std::string_view name) const {
  for (const Argument& argument : arguments) {
    if (argument.name == name) return &argument;
  }
  return nullptr;
}

std::string Program::Describe(int64_t leaf) const {
  return "call " + std::to_string(leaves[leaf].call.call_id) + " " + leaves[leaf].Name();
}

Program LoadProgram(const storage::Reader& trace) {
  Program program;
  program.trace = &trace;
  std::vector<storage::Call> calls = trace.Calls(/*leaves_only=*/true);
  std::unordered_map<int64_t, size_t> leaf_of_call;
  for (storage::Call& call : calls) {
    const storage::Op& op = trace.GetOp(call.op_id);
    if (op.dialect != "aten") continue;
    Leaf leaf;
    leaf.index = static_cast<int64_t>(program.leaves.size());
    leaf.op = &op;
    leaf.arguments = trace.Arguments(call);
    leaf.call = std::move(call);
    leaf_of_call.emplace(leaf.call.call_id, program.leaves.size());
    program.leaves.push_back(std::move(leaf));
  }
  if (program.leaves.empty()) {
    throw Error(ErrorKind::kTrace, trace.path() + " holds no operator call at the aten level");
  }
  for (storage::Snapshot& snapshot : trace.Snapshots()) {
    auto found = leaf_of_call.find(snapshot.call_id);
    if (found == leaf_of_call.end()) continue;
    Leaf& leaf = program.leaves[found->second];
    (snapshot.after ? leaf.after : leaf.before).push_back(std::move(snapshot));
  }
  program.uses.resize(program.leaves.size());
  for (Leaf& leaf : program.leaves) {
    leaf.kind = KindOf(leaf);
    program.uses[leaf.index] = UsesOf(program, leaf);
    NoteBuffers(program, leaf);
  }
  return program;
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
