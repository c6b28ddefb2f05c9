// One table of the operators of PyTorch whose schema and arguments do not tell what they mean to a
// recording and to its replay. The recorder takes from it which values to keep. The analyzer takes
// from it what a leaf does, what ends a captured region and which part of a device is busy. Every
// trace gets its barriers as `barrier_rule`. acl_operators.h has the operators of the ACL
// interface.
//
// An operator without a row is what its arguments show (analyzer/calls/leaf_kind.h). Standard
// library alone, because the recorder's plug-in is compiled with it too.
#pragma once

#include <cstdint>
#include <string_view>

#include "meaning/operator_facts.h"

namespace acltape::meaning {

// Tells a replay how to treat an operator.
enum class Effect : uint8_t {
  kByArguments,
  kView,        // moves no data
  kRebinds,     // gives a tensor other storage: a view to a replay, no new value to the recorder
  kAllocation,  // makes memory without content
  kRandom,      // its results cannot be computed again
  kExchange,    // reads and writes whatever it is given, now or later, by other processes or code
                // that nobody knows; who reads such memory next has it as a recorded input
};

// The reason for which a captured region ends before an operator.
enum class Barrier : uint8_t {
  kNone,
  kHostRead,       // the host waits for a value
  kDataDependent,  // the host reads a size before it goes on
  kMask,           // the same, where an index is a mask
  kExchange,       // it takes part in work of other processes
};

// Operators that drop elements draw random numbers where they keep fewer than all.
inline constexpr Condition kDropsSome{"keep_prob", Condition::Test::kNotOne};
inline constexpr Condition kTrains{"training", Condition::Test::kTrue};

struct TorchOperator {
  std::string_view name;           // "aten::nonzero", or a pattern (operator_facts.h)
  std::string_view overload = {};  // empty: every one
  Effect effect = Effect::kByArguments;
  Condition effect_if = {};  // if it does not hold, the arguments tell
  Barrier barrier = Barrier::kNone;
  std::string_view reason = {};  // reason of a barrier: what the host does, for people
  Resource resource = Resource::kVector;
  bool overwrites = false;     // works in place and does not read what it overwrites
  bool unmarked_view = false;  // its result shares storage, and its schema does not say so
  // Passes one tensor on and changes at most rounding and memory order.
  bool passes_on = false;
  // Copies also from one device to another. The host waits for such a copy.
  bool copies_between_devices = false;
  // The one argument that it writes, where its schema marks others too.
  std::string_view writes_only = {};
};

// The first row that fits counts.
inline constexpr TorchOperator kTorchOperators[] = {
    {.name = "aten::empty", .effect = Effect::kAllocation},
    {.name = "aten::empty_strided", .effect = Effect::kAllocation},
    {.name = "aten::empty_like", .effect = Effect::kAllocation},
    {.name = "aten::new_empty", .effect = Effect::kAllocation},
    {.name = "aten::new_empty_strided", .effect = Effect::kAllocation},
    {.name = "aten::empty_quantized", .effect = Effect::kAllocation},
    {.name = "aten::_empty_affine_quantized", .effect = Effect::kAllocation},
    {.name = "aten::resize_", .effect = Effect::kAllocation},
    {.name = "aten::resize_as_", .effect = Effect::kAllocation},

    {.name = "aten::set_", .effect = Effect::kRebinds},
    {.name = "aten::detach_", .effect = Effect::kView},
    {.name = "aten::as_strided_", .effect = Effect::kView},
    {.name = "aten::squeeze_", .effect = Effect::kView},
    {.name = "aten::unsqueeze_", .effect = Effect::kView},
    {.name = "aten::t_", .effect = Effect::kView},
    {.name = "aten::transpose_", .effect = Effect::kView},
    {.name = "aten::requires_grad_", .effect = Effect::kView},
    // Its schema says that it writes the tensor, but it only tells the allocator of a stream.
    {.name = "aten::record_stream", .effect = Effect::kView},

    {.name = "aten::normal", .effect = Effect::kRandom},
    {.name = "aten::normal_", .effect = Effect::kRandom, .overwrites = true},
    {.name = "aten::uniform_", .effect = Effect::kRandom, .overwrites = true},
    {.name = "aten::random_", .effect = Effect::kRandom, .overwrites = true},
    {.name = "aten::exponential_", .effect = Effect::kRandom, .overwrites = true},
    {.name = "aten::geometric_", .effect = Effect::kRandom, .overwrites = true},
    {.name = "aten::cauchy_", .effect = Effect::kRandom, .overwrites = true},
    {.name = "aten::log_normal_", .effect = Effect::kRandom, .overwrites = true},
    {.name = "aten::bernoulli", .effect = Effect::kRandom},
    {.name = "aten::bernoulli_", .effect = Effect::kRandom, .overwrites = true},
    {.name = "aten::multinomial", .effect = Effect::kRandom},
    {.name = "aten::poisson", .effect = Effect::kRandom},
    {.name = "aten::binomial", .effect = Effect::kRandom},
    {.name = "aten::rand", .effect = Effect::kRandom},
    {.name = "aten::rand_like", .effect = Effect::kRandom},
    {.name = "aten::randn", .effect = Effect::kRandom},
    {.name = "aten::randn_like", .effect = Effect::kRandom},
    {.name = "aten::randint", .effect = Effect::kRandom},
    {.name = "aten::randint_like", .effect = Effect::kRandom},
    {.name = "aten::randperm", .effect = Effect::kRandom},
    {.name = "aten::dropout", .effect = Effect::kRandom},
    {.name = "aten::dropout_", .effect = Effect::kRandom},
    {.name = "aten::native_dropout", .effect = Effect::kRandom},
    {.name = "aten::rrelu_with_noise", .effect = Effect::kRandom},
    {.name = "aten::_standard_gamma", .effect = Effect::kRandom},
    {.name = "aten::_sample_dirichlet", .effect = Effect::kRandom},
    {.name = "npu::npu_fusion_attention",
     .effect = Effect::kRandom,
     .effect_if = kDropsSome,
     .resource = Resource::kCube},
    {.name = "npu::npu_fusion_attention_v3",
     .effect = Effect::kRandom,
     .effect_if = kDropsSome,
     .resource = Resource::kCube},

    // Their schemas say that they write nothing, and they return before they have written.
    {.name = "c10d::*",
     .effect = Effect::kExchange,
     .barrier = Barrier::kExchange,
     .reason = "collective: other processes take part, and the results come later",
     .resource = Resource::kCommunication},
    {.name = "_c10d_functional::*",
     .effect = Effect::kExchange,
     .barrier = Barrier::kExchange,
     .reason = "collective: other processes take part, and the results come later",
     .resource = Resource::kCommunication},
    {.name = "_c10d_functional_autograd::*",
     .effect = Effect::kExchange,
     .barrier = Barrier::kExchange,
     .reason = "collective: other processes take part, and the results come later",
     .resource = Resource::kCommunication},
    {.name = "c10d_functional::*",
     .effect = Effect::kExchange,
     .barrier = Barrier::kExchange,
     .reason = "collective: other processes take part, and the results come later",
     .resource = Resource::kCommunication},
    // These write their results in the order of the stream, like any operator.
    {.name = "npu::npu_mm_all_reduce_base",
     .barrier = Barrier::kExchange,
     .reason = "it exchanges data with the other ranks of a group",
     .resource = Resource::kCommunication},
    {.name = "npu::npu_all_gather_base_mm",
     .barrier = Barrier::kExchange,
     .reason = "it exchanges data with the other ranks of a group",
     .resource = Resource::kCommunication},
    {.name = "npu::npu_mm_reduce_scatter_base",
     .barrier = Barrier::kExchange,
     .reason = "it exchanges data with the other ranks of a group",
     .resource = Resource::kCommunication},
    {.name = "npu::npu_moe_distribute_*",
     .barrier = Barrier::kExchange,
     .reason = "it exchanges data with the other ranks of a group",
     .resource = Resource::kCommunication},
    {.name = "_C_ascend::matmul_allreduce_add_rmsnorm*",
     .barrier = Barrier::kExchange,
     .reason = "it exchanges data with the other ranks of a group",
     .resource = Resource::kCommunication},

    {.name = "aten::_local_scalar_dense",
     .barrier = Barrier::kHostRead,
     .reason = "host read: the program waits for a value of a tensor"},
    {.name = "aten::is_nonzero",
     .barrier = Barrier::kHostRead,
     .reason = "host read: the program waits for the truth of a tensor"},
    {.name = "aten::equal",
     .barrier = Barrier::kHostRead,
     .reason = "host read: the program waits for the result of a comparison"},
    {.name = "aten::segment_reduce",
     .barrier = Barrier::kHostRead,
     .reason = "host read: lengths are read on the host"},
    {.name = "aten::nonzero",
     .barrier = Barrier::kDataDependent,
     .reason = "data-dependent shape: as many rows as there are nonzero elements"},
    {.name = "aten::nonzero_numpy",
     .barrier = Barrier::kDataDependent,
     .reason = "data-dependent shape: as many rows as there are nonzero elements"},
    {.name = "aten::argwhere",
     .barrier = Barrier::kDataDependent,
     .reason = "data-dependent shape: as many rows as there are nonzero elements"},
    {.name = "aten::masked_select",
     .barrier = Barrier::kDataDependent,
     .reason = "data-dependent shape: as many elements as the mask selects"},
    {.name = "aten::_unique",
     .barrier = Barrier::kDataDependent,
     .reason = "data-dependent shape: as many elements as there are distinct values"},
    {.name = "aten::_unique2",
     .barrier = Barrier::kDataDependent,
     .reason = "data-dependent shape: as many elements as there are distinct values"},
    {.name = "aten::unique_dim",
     .barrier = Barrier::kDataDependent,
     .reason = "data-dependent shape: as many slices as there are distinct ones"},
    {.name = "aten::unique_consecutive",
     .barrier = Barrier::kDataDependent,
     .reason = "data-dependent shape: as many elements as there are runs of equal values"},
    {.name = "aten::unique_dim_consecutive",
     .barrier = Barrier::kDataDependent,
     .reason = "data-dependent shape: as many slices as there are runs of equal ones"},
    {.name = "aten::bincount",
     .barrier = Barrier::kDataDependent,
     .reason = "data-dependent shape: as many bins as the largest value"},
    {.name = "aten::repeat_interleave",
     .overload = "Tensor",
     .barrier = Barrier::kDataDependent,
     .reason = "data-dependent shape: the repeats are summed on the host"},
    {.name = "aten::repeat_interleave",
     .overload = "self_Tensor",
     .barrier = Barrier::kDataDependent,
     .reason = "data-dependent shape: the repeats are summed on the host"},
    {.name = "aten::_coalesce",
     .barrier = Barrier::kDataDependent,
     .reason = "data-dependent shape: as many entries as there are distinct indices"},

    {.name = "aten::index",
     .barrier = Barrier::kMask,
     .reason = "data-dependent shape: an index is a mask, whose nonzero elements are counted"},
    {.name = "aten::index_put",
     .barrier = Barrier::kMask,
     .reason = "data-dependent shape: an index is a mask, whose nonzero elements are counted"},
    {.name = "aten::index_put_",
     .barrier = Barrier::kMask,
     .reason = "data-dependent shape: an index is a mask, whose nonzero elements are counted"},
    {.name = "aten::_index_put_impl_",
     .barrier = Barrier::kMask,
     .reason = "data-dependent shape: an index is a mask, whose nonzero elements are counted"},

    {.name = "aten::zero_", .overwrites = true},
    {.name = "aten::fill_", .overwrites = true},

    // Copies, and what may be one.
    {.name = "aten::copy_", .overwrites = true, .passes_on = true, .copies_between_devices = true},
    {.name = "aten::_to_copy", .passes_on = true, .copies_between_devices = true},
    {.name = "aten::clone", .passes_on = true},
    {.name = "aten::contiguous", .passes_on = true},
    {.name = "aten::copy", .passes_on = true},
    {.name = "aten::_copy_from", .passes_on = true},
    {.name = "aten::to", .passes_on = true},
    {.name = "aten::_reshape_copy", .passes_on = true},
    {.name = "aten::alias_copy", .passes_on = true},
    {.name = "aten::lift_fresh_copy", .passes_on = true},
    {.name = "aten::type_as", .passes_on = true},
    {.name = "aten::_unsafe_view", .unmarked_view = true, .passes_on = true},
    {.name = "aten::lift", .unmarked_view = true, .passes_on = true},
    {.name = "aten::lift_fresh", .unmarked_view = true, .passes_on = true},

    // The products with adapters of vLLM's plug-in mark all their tensors.
    {.name = "_C_ascend::bgmv_*", .writes_only = "y"},
    {.name = "_C_ascend::sgmv_*", .writes_only = "y"},

    // Matrix products.
    {.name = "aten::mm", .resource = Resource::kCube},
    {.name = "aten::addmm*", .resource = Resource::kCube},
    {.name = "aten::bmm", .resource = Resource::kCube},
    {.name = "aten::baddbmm*", .resource = Resource::kCube},
    {.name = "aten::addbmm*", .resource = Resource::kCube},
    {.name = "aten::matmul", .resource = Resource::kCube},
    {.name = "aten::linear*", .resource = Resource::kCube},
    {.name = "aten::addmv*", .resource = Resource::kCube},
    {.name = "aten::mv", .resource = Resource::kCube},
    {.name = "aten::convolution*", .resource = Resource::kCube},
    {.name = "aten::_convolution*", .resource = Resource::kCube},
    {.name = "aten::mkldnn_convolution*", .resource = Resource::kCube},
    {.name = "aten::conv*", .resource = Resource::kCube},
    {.name = "aten::thnn_conv*", .resource = Resource::kCube},
    {.name = "aten::slow_conv*", .resource = Resource::kCube},
    {.name = "aten::_slow_conv*", .resource = Resource::kCube},
    {.name = "aten::mkldnn_linear*", .resource = Resource::kCube},
    {.name = "aten::_scaled_dot_product*", .resource = Resource::kCube},
    {.name = "aten::scaled_dot_product*", .resource = Resource::kCube},
    {.name = "npu::npu_fusion_attention*", .resource = Resource::kCube},
    {.name = "npu::npu_flash_attention*", .resource = Resource::kCube},
    {.name = "npu::npu_incre_flash_attention*", .resource = Resource::kCube},
    {.name = "npu::npu_prompt_flash_attention*", .resource = Resource::kCube},
    {.name = "npu::npu_grouped_matmul*", .resource = Resource::kCube},
};

// Tensors that an operator reads or writes only under a condition, whatever its schema says. The
// schemas of normalisations do not mark the running statistics, which training updates. Fused
// attention does not touch the state of the random numbers where it drops nothing: its results for
// this state are then whatever memory held. So are results that an operator of the adapter was not
// asked for.
struct ConditionalUse {
  std::string_view name;
  std::string_view argument;
  bool write = false;  // else it is read
  Condition when = {};
};

inline constexpr ConditionalUse kConditionalUses[] = {
    {"aten::native_batch_norm", "running_mean", true, kTrains},
    {"aten::native_batch_norm", "running_var", true, kTrains},
    {"aten::cudnn_batch_norm", "running_mean", true, kTrains},
    {"aten::cudnn_batch_norm", "running_var", true, kTrains},
    {"aten::miopen_batch_norm", "running_mean", true, kTrains},
    {"aten::miopen_batch_norm", "running_var", true, kTrains},
    {"npu::npu_fused_infer_attention_score", "out1", true, {"softmax_lse_flag"}},
    {"npu::npu_fused_infer_attention_score_v2", "out1", true, {"return_softmax_lse"}},
    {"npu::npu_fusion_attention_v3", "out4", true, kDropsSome},
    {"npu::npu_fusion_attention_v3", "out5", true, kDropsSome},
    {"npu::npu_fusion_attention_grad_v3", "seed", false, kDropsSome},
    {"npu::npu_fusion_attention_grad_v3", "offset", false, kDropsSome},
    {"npu::npu_kv_rmsnorm_rope_cache", "out2", true, {"is_output_kv"}},
    {"npu::npu_kv_rmsnorm_rope_cache", "out3", true, {"is_output_kv"}},
    {"npu::npu_kv_rmsnorm_rope_cache_v2", "out0", true, {"is_output_kv"}},
    {"npu::npu_kv_rmsnorm_rope_cache_v2", "out1", true, {"is_output_kv"}},
    {"npu::npu_kv_rmsnorm_rope_cache_v2_functional", "out2", true, {"is_output_kv"}},
    {"npu::npu_kv_rmsnorm_rope_cache_v2_functional", "out3", true, {"is_output_kv"}},
    {"npu::npu_mla_prolog_v3", "out3", true, {"query_norm_flag"}},
    {"npu::npu_moe_gating_top_k", "out2", true, {"out_flag"}},
    {"npu::npu_moe_init_routing_v2", "out2", true, {"expert_tokens_num_flag"}},
};

// Null when no row speaks of this use. Its schema then tells whether it happens.
constexpr const ConditionalUse* FindConditionalUse(std::string_view name, std::string_view argument,
                                                   bool write) {
  for (const ConditionalUse& row : kConditionalUses) {
    if (row.write == write && row.name == name && row.argument == argument) return &row;
  }
  return nullptr;
}

// Namespaces whose operators are what their schemas and arguments say. What others do is not known:
// they are written in Python or in an extension, and may do anything.
inline constexpr std::string_view kKnownNamespaces[] = {"aten", "npu", "prims"};

// "aten" of "aten::add".
constexpr std::string_view NamespaceOf(std::string_view name) {
  const size_t colons = name.find("::");
  return colons == std::string_view::npos ? std::string_view() : name.substr(0, colons);
}

constexpr bool IsKnownNamespace(std::string_view name) {
  for (const std::string_view known : kKnownNamespaces) {
    if (NamespaceOf(name) == known) return true;
  }
  return false;
}

// Null when the operator has no row. Its arguments then tell what it does.
constexpr const TorchOperator* FindTorchOperator(std::string_view name, std::string_view overload) {
  for (const TorchOperator& row : kTorchOperators) {
    if (!FitsPattern(row.name, name)) continue;
    if (row.overload.empty() || row.overload == overload) return &row;
  }
  return nullptr;
}

// The facts of an operator, those of an operator without a row included.
constexpr TorchOperator TorchOperatorOf(std::string_view name, std::string_view overload) {
  const TorchOperator* row = FindTorchOperator(name, overload);
  return row == nullptr ? TorchOperator{.name = name} : *row;
}

}  // namespace acltape::meaning
