// From which elements of its inputs an operator of PyTorch computes each element of its result.
#pragma once

#include <string_view>
#include <vector>

#include "storage/trace.h"

namespace acltape::analyzer::executions {

// An input, and which of its elements are marked, in row-major order; empty: none of them.
struct FlowTensor {
  int argument = 0;  // index in the arguments
  const storage::Layout* layout = nullptr;
  std::vector<char> undefined;
};

// False for operators of which nothing is known: they may write more than their schemas say.
bool IsFlowKnown(std::string_view name);

// The marked elements of a result, in row-major order: those that are computed from a marked
// element. Known are fills, copies, element-wise work, reductions, softmax and products of
// matrices. The result is empty, and nothing is marked, for every other operator.
std::vector<char> FlowOf(std::string_view name,
                         const std::vector<storage::SignatureArgument>& arguments,
                         const std::vector<FlowTensor>& inputs, const storage::Layout& result);

}  // namespace acltape::analyzer::executions
