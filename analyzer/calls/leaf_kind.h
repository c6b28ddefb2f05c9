// The kind of a leaf, and the tensors that it reads and writes. Both follow from its operator and
// its arguments alone, so that they are computed once for all calls of one signature.
//
//   view        its results share storage with an argument and it writes nothing
//   allocation  it makes storage without content (empty, new_empty, resize_)
//   source      its results cannot be computed again (random numbers, kernels that PyTorch
//               generated) and come from the recording
//   host read   it brings a tensor's value to the host (item, equal, is_nonzero)
//   kernel      everything else
//   exchange    it may read and write all its tensors, now or later, with other processes
//               (collectives) or in unknown ways. A replay leaves it out: the next reader of such
//               memory has it as a recorded input.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "analyzer/calls/uses.h"
#include "meaning/operator_facts.h"
#include "storage/trace.h"

namespace acltape::analyzer {

enum class LeafKind : uint8_t { kView, kAllocation, kSource, kHostRead, kKernel, kExchange };
std::string_view LeafKindName(LeafKind kind);

// The dialect of kernels that torch.compile generated. Nobody knows what they compute (opaque).
constexpr std::string_view kOpaqueDialect = "inductor";
// True if calls of this dialect are leaves of PyTorch's dispatcher or replace such leaves.
bool IsLeafDialect(std::string_view dialect);

// True if the condition holds for the arguments of a call. An argument that is missing fails it.
template <typename Arguments>
bool Holds(const meaning::Condition& condition, const Arguments& arguments) {
  if (condition.always()) return true;
  for (const storage::ArgumentValue& argument : arguments) {
    if (argument.name != condition.argument) continue;
    return condition.test == meaning::Condition::Test::kTrue ? argument.integer != 0
                                                             : argument.real != 1;
  }
  return false;
}

// Only the equality of the buffer ids in `arguments` matters, and 0 means "no storage". A leaf that
// threw (`status` not 0) has no effect to repeat and counts as a view.
LeafKind KindOfLeaf(const storage::Op& op, int32_t status,
                    const std::vector<storage::Argument>& arguments);

// The uses in order of arguments. Views and allocations have none. A written argument that is also
// an input is listed twice, the read first. An exchange reads and writes each of its tensors.
std::vector<ArgumentUse> UsesOfLeaf(const storage::Op& op, LeafKind kind,
                                    const std::vector<storage::Argument>& arguments);

}  // namespace acltape::analyzer
