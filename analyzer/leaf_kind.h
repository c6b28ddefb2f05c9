// What executing a leaf takes, and which of its tensors it reads and writes: from its operator and
// its arguments alone, so that it can be asked once for all calls of one signature.
//
//   view        its results share storage with an argument and it writes nothing
//   allocation  it makes storage without content (empty, new_empty, resize_)
//   source      its results cannot be computed again (random numbers, kernels that PyTorch
//   generated)
//               and come from the recording
//   host read   it brings a tensor's value to the host (item, equal, is_nonzero)
//   kernel      everything else
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "storage/trace.h"

namespace acltape::analyzer {

enum class LeafKind : uint8_t { kView, kAllocation, kSource, kHostRead, kKernel };
std::string_view LeafKindName(LeafKind kind);

// Dialect of kernels that torch.compile generated: their computation is not known (opaque).
constexpr std::string_view kOpaqueDialect = "inductor";
// Whether calls of this dialect are leaves of PyTorch's dispatcher or stand for some.
bool IsLeafDialect(std::string_view dialect);

// A tensor that a leaf reads or writes: place in the arguments and index in a tensor list.
struct ArgumentUse {
  int argument = 0;
  int element = 0;
  bool write = false;
};

// Only equality of the buffer ids in `arguments` counts, and 0 is "no storage". A leaf that threw
// (`status` not 0) has no effect to repeat and counts as a view.
LeafKind KindOfLeaf(const storage::Op& op, int32_t status,
                    const std::vector<storage::Argument>& arguments);

// In order of arguments. Views and allocations do neither; a written argument that is also an input
// is there twice, the read first.
std::vector<ArgumentUse> UsesOfLeaf(const storage::Op& op, LeafKind kind,
                                    const std::vector<storage::Argument>& arguments);

}  // namespace acltape::analyzer
