// One table of the operators of PyTorch whose schema and arguments do not tell what they mean to a
// recording and to its replay. The recorder takes from it which values to keep. The analyzer takes
// from it what a leaf does and what ends a captured region. Every trace gets it as `barrier_rule`.
//
// An operator without a row is what its arguments show (analyzer/calls/leaf_kind.h). Standard
// library alone, because the recorder's plug-in is compiled with it too.
#pragma once

#include <cstdint>
#include <string_view>

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

struct TorchOperator {
  std::string_view name;      // "aten::nonzero"; "c10d::*": every operator of a namespace
  std::string_view overload;  // empty: every one
  Effect effect = Effect::kByArguments;
  Barrier barrier = Barrier::kNone;
  std::string_view reason = {};  // of a barrier: what the host does, for people
};

inline constexpr TorchOperator kTorchOperators[] = {
    {"aten::empty", "", Effect::kAllocation},
    {"aten::empty_strided", "", Effect::kAllocation},
    {"aten::empty_like", "", Effect::kAllocation},
    {"aten::new_empty", "", Effect::kAllocation},
    {"aten::new_empty_strided", "", Effect::kAllocation},
    {"aten::empty_quantized", "", Effect::kAllocation},
    {"aten::_empty_affine_quantized", "", Effect::kAllocation},
    {"aten::resize_", "", Effect::kAllocation},
    {"aten::resize_as_", "", Effect::kAllocation},

    {"aten::set_", "", Effect::kRebinds},
    {"aten::detach_", "", Effect::kView},
    {"aten::as_strided_", "", Effect::kView},
    {"aten::squeeze_", "", Effect::kView},
    {"aten::unsqueeze_", "", Effect::kView},
    {"aten::t_", "", Effect::kView},
    {"aten::transpose_", "", Effect::kView},
    {"aten::requires_grad_", "", Effect::kView},

    {"aten::normal", "", Effect::kRandom},
    {"aten::normal_", "", Effect::kRandom},
    {"aten::uniform_", "", Effect::kRandom},
    {"aten::random_", "", Effect::kRandom},
    {"aten::exponential_", "", Effect::kRandom},
    {"aten::geometric_", "", Effect::kRandom},
    {"aten::cauchy_", "", Effect::kRandom},
    {"aten::log_normal_", "", Effect::kRandom},
    {"aten::bernoulli", "", Effect::kRandom},
    {"aten::bernoulli_", "", Effect::kRandom},
    {"aten::multinomial", "", Effect::kRandom},
    {"aten::poisson", "", Effect::kRandom},
    {"aten::binomial", "", Effect::kRandom},
    {"aten::rand", "", Effect::kRandom},
    {"aten::rand_like", "", Effect::kRandom},
    {"aten::randn", "", Effect::kRandom},
    {"aten::randn_like", "", Effect::kRandom},
    {"aten::randint", "", Effect::kRandom},
    {"aten::randint_like", "", Effect::kRandom},
    {"aten::randperm", "", Effect::kRandom},
    {"aten::dropout", "", Effect::kRandom},
    {"aten::dropout_", "", Effect::kRandom},
    {"aten::native_dropout", "", Effect::kRandom},
    {"aten::rrelu_with_noise", "", Effect::kRandom},
    {"aten::_standard_gamma", "", Effect::kRandom},
    {"aten::_sample_dirichlet", "", Effect::kRandom},

    // Their schemas say that they write nothing, and they return before they have written.
    {"c10d::*", "", Effect::kExchange, Barrier::kExchange,
     "collective: other processes take part, and the results come later"},
    {"_c10d_functional::*", "", Effect::kExchange, Barrier::kExchange,
     "collective: other processes take part, and the results come later"},
    {"_c10d_functional_autograd::*", "", Effect::kExchange, Barrier::kExchange,
     "collective: other processes take part, and the results come later"},
    {"c10d_functional::*", "", Effect::kExchange, Barrier::kExchange,
     "collective: other processes take part, and the results come later"},

    {"aten::_local_scalar_dense", "", Effect::kByArguments, Barrier::kHostRead,
     "host read: the program waits for a value of a tensor"},
    {"aten::is_nonzero", "", Effect::kByArguments, Barrier::kHostRead,
     "host read: the program waits for the truth of a tensor"},
    {"aten::equal", "", Effect::kByArguments, Barrier::kHostRead,
     "host read: the program waits for the result of a comparison"},
    {"aten::segment_reduce", "", Effect::kByArguments, Barrier::kHostRead,
     "host read: lengths are read on the host"},
    {"aten::nonzero", "", Effect::kByArguments, Barrier::kDataDependent,
     "data-dependent shape: as many rows as there are nonzero elements"},
    {"aten::nonzero_numpy", "", Effect::kByArguments, Barrier::kDataDependent,
     "data-dependent shape: as many rows as there are nonzero elements"},
    {"aten::argwhere", "", Effect::kByArguments, Barrier::kDataDependent,
     "data-dependent shape: as many rows as there are nonzero elements"},
    {"aten::masked_select", "", Effect::kByArguments, Barrier::kDataDependent,
     "data-dependent shape: as many elements as the mask selects"},
    {"aten::_unique", "", Effect::kByArguments, Barrier::kDataDependent,
     "data-dependent shape: as many elements as there are distinct values"},
    {"aten::_unique2", "", Effect::kByArguments, Barrier::kDataDependent,
     "data-dependent shape: as many elements as there are distinct values"},
    {"aten::unique_dim", "", Effect::kByArguments, Barrier::kDataDependent,
     "data-dependent shape: as many slices as there are distinct ones"},
    {"aten::unique_consecutive", "", Effect::kByArguments, Barrier::kDataDependent,
     "data-dependent shape: as many elements as there are runs of equal values"},
    {"aten::unique_dim_consecutive", "", Effect::kByArguments, Barrier::kDataDependent,
     "data-dependent shape: as many slices as there are runs of equal ones"},
    {"aten::bincount", "", Effect::kByArguments, Barrier::kDataDependent,
     "data-dependent shape: as many bins as the largest value"},
    {"aten::repeat_interleave", "Tensor", Effect::kByArguments, Barrier::kDataDependent,
     "data-dependent shape: the repeats are summed on the host"},
    {"aten::repeat_interleave", "self_Tensor", Effect::kByArguments, Barrier::kDataDependent,
     "data-dependent shape: the repeats are summed on the host"},
    {"aten::_coalesce", "", Effect::kByArguments, Barrier::kDataDependent,
     "data-dependent shape: as many entries as there are distinct indices"},

    {"aten::index", "", Effect::kByArguments, Barrier::kMask,
     "data-dependent shape: an index is a mask, whose nonzero elements are counted"},
    {"aten::index_put", "", Effect::kByArguments, Barrier::kMask,
     "data-dependent shape: an index is a mask, whose nonzero elements are counted"},
    {"aten::index_put_", "", Effect::kByArguments, Barrier::kMask,
     "data-dependent shape: an index is a mask, whose nonzero elements are counted"},
    {"aten::_index_put_impl_", "", Effect::kByArguments, Barrier::kMask,
     "data-dependent shape: an index is a mask, whose nonzero elements are counted"},
};

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
  constexpr std::string_view kWhole = "::*";
  const std::string_view space = NamespaceOf(name);
  for (const TorchOperator& row : kTorchOperators) {
    const bool named = row.name.back() == kWhole.back()
                           ? row.name.substr(0, row.name.size() - kWhole.size()) == space
                           : row.name == name;
    if (named && (row.overload.empty() || row.overload == overload)) return &row;
  }
  return nullptr;
}

}  // namespace acltape::meaning
