#include "analyzer/leaf_kind.h"

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

const Argument* FindArgument(const std::vector<Argument>& arguments, std::string_view name) {
  for (const Argument& argument : arguments) {
    if (argument.name == name) return &argument;
  }
  return nullptr;
}

// Conditions of uses, on the arguments of a call.
bool IsTraining(const std::vector<Argument>& arguments) {
  const Argument* training = FindArgument(arguments, "training");
  return training != nullptr && training->integer != 0;
}
bool DropsSome(const std::vector<Argument>& arguments) {
  const Argument* keep = FindArgument(arguments, "keep_prob");
  return keep != nullptr && keep->real != 1;
}

// Operators whose results are random only under a condition.
struct ConditionalSource {
  std::string_view name;
  bool (*when)(const std::vector<Argument>& arguments);
};
constexpr ConditionalSource kConditionalSources[] = {{"npu::npu_fusion_attention_v3", DropsSome}};

// Tensors that an operator reads or writes only under a condition, whatever its schema or the
// recorder says. Fused attention leaves the state of the random numbers alone when it drops
// nothing: its results for them are then whatever memory held.
struct ConditionalUse {
  std::string_view name;
  std::string_view argument;
  bool write;
  bool (*when)(const std::vector<Argument>& arguments);
};
constexpr ConditionalUse kConditionalUses[] = {
    {"aten::native_batch_norm", "running_mean", true, IsTraining},
    {"aten::native_batch_norm", "running_var", true, IsTraining},
    {"npu::npu_fusion_attention_v3", "out4", true, DropsSome},
    {"npu::npu_fusion_attention_v3", "out5", true, DropsSome},
    {"npu::npu_fusion_attention_grad_v3", "seed", false, DropsSome},
    {"npu::npu_fusion_attention_grad_v3", "offset", false, DropsSome},
};

// Whether the call uses the tensor so; `usually` where no row knows.
bool Uses(const storage::Op& op, const std::vector<Argument>& arguments, const Argument& argument,
          bool write, bool usually) {
  for (const ConditionalUse& row : kConditionalUses) {
    if (row.write != write || op.name != row.name || argument.name != row.argument) continue;
    return row.when(arguments);
  }
  return usually;
}

bool Writes(const storage::Op& op, const std::vector<Argument>& arguments,
            const Argument& argument) {
  return Uses(op, arguments, argument, true, argument.direction != Direction::kIn);
}

// The schema names it among the arguments that are written, "Tensor(a!) out", which tells an out=
// argument from a return.
bool IsOutArgument(const storage::Op& op, const Argument& argument) {
  const std::string_view schema = op.schema;
  const std::string_view arguments = schema.substr(0, schema.find("->"));
  for (const char* written : {"!) ", "!)[] "}) {
    size_t at = arguments.find(written + argument.name);
    for (; at != std::string_view::npos; at = arguments.find(written + argument.name, at + 1)) {
      const size_t end = at + std::string_view(written).size() + argument.name.size();
      if (end < arguments.size() && (arguments[end] == ',' || arguments[end] == ')')) return true;
    }
  }
  return false;
}

// What a kernel without a known computation overwrites without reading it
// (recorder/torch/opaque.cpp).
constexpr std::string_view kOpaqueResults = "writes";

}  // namespace

bool IsLeafDialect(std::string_view dialect) {
  return dialect == "aten" || dialect == kOpaqueDialect;
}

std::string_view LeafKindName(LeafKind kind) {
  constexpr std::string_view kNames[] = {"view", "allocation", "source", "host read", "kernel"};
  return kNames[static_cast<size_t>(kind)];
}

LeafKind KindOfLeaf(const storage::Op& op, int32_t status, const std::vector<Argument>& arguments) {
  if (status != 0) return LeafKind::kView;  // it threw: it has no effect to repeat
  if (op.dialect == kOpaqueDialect) return LeafKind::kSource;
  for (const NamedKind& row : kNamedKinds) {
    if (op.name == row.name) return row.kind;
  }
  for (const ConditionalSource& row : kConditionalSources) {
    if (op.name == row.name && row.when(arguments)) return LeafKind::kSource;
  }
  std::unordered_set<int64_t> inputs;
  bool writes = false;
  bool fresh = false;       // a result in storage of its own, or in an out= argument
  bool results = false;     // any tensor result
  bool host_value = false;  // a result that is no tensor
  for (const Argument& argument : arguments) {
    if (argument.direction != Direction::kOut && Writes(op, arguments, argument)) writes = true;
    if (argument.direction != Direction::kOut) {
      if (argument.HoldsTensors()) {
        for (const TensorRef& tensor : argument.tensors) inputs.insert(tensor.buffer_id);
      }
      continue;
    }
    if (!argument.HoldsTensors()) {
      host_value = host_value || argument.kind != ValueKind::kNone;
      continue;
    }
    for (const TensorRef& tensor : argument.tensors) {
      if (!tensor.defined()) continue;
      results = true;
      if (tensor.buffer_id == 0) continue;
      fresh = fresh || !inputs.count(tensor.buffer_id) || IsOutArgument(op, argument);
    }
  }
  if (writes || fresh) return LeafKind::kKernel;
  if (host_value && !results && !inputs.empty()) return LeafKind::kHostRead;
  return LeafKind::kView;
}

std::vector<ArgumentUse> UsesOfLeaf(const storage::Op& op, LeafKind kind,
                                    const std::vector<Argument>& arguments) {
  std::vector<ArgumentUse> uses;
  if (kind == LeafKind::kView || kind == LeafKind::kAllocation) return uses;
  std::unordered_set<int64_t> inputs;
  for (const Argument& argument : arguments) {
    if (!argument.HoldsTensors()) continue;
    const bool written = Writes(op, arguments, argument);
    // A source overwrites what it is given; its recorded results replace the whole tensor.
    const bool opaque = op.dialect == kOpaqueDialect && argument.name != kOpaqueResults;
    const bool usually =
        argument.direction != Direction::kOut && (kind != LeafKind::kSource || opaque);
    const bool read = Uses(op, arguments, argument, false, usually);
    for (size_t i = 0; i < argument.tensors.size(); ++i) {
      const TensorRef& tensor = argument.tensors[i];
      if (tensor.buffer_id == 0) continue;
      ArgumentUse use;
      use.argument = static_cast<int>(&argument - arguments.data());
      use.element = static_cast<int>(i);
      if (read) uses.push_back(use);
      // A result in storage of an argument is a view of it, not something written.
      const bool view = argument.direction == Direction::kOut && inputs.count(tensor.buffer_id) &&
                        !IsOutArgument(op, argument);
      use.write = true;
      if (written && !view) uses.push_back(use);
      if (argument.direction == Direction::kIn) inputs.insert(tensor.buffer_id);
    }
  }
  return uses;
}

}  // namespace acltape::analyzer
