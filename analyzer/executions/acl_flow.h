// From which elements of its inputs an operator of the ACL interface computes each element of a
// result. element_flow.h is about the operators of PyTorch.
#pragma once

#include <string_view>
#include <vector>

#include "analyzer/executions/element_flow.h"

namespace acltape::analyzer::executions {

// False for operators of which nothing is known: those that read by index, length or mask, and
// those without a row.
bool IsAclFlowKnown(std::string_view name);

// The marked elements of a result, in row-major order: those that are computed from a marked
// element. The inputs are the tensors that the operator reads, in order. The answer is empty, and
// nothing is marked, where the flow is not known.
std::vector<char> FlowOfAcl(std::string_view name,
                            const std::vector<storage::SignatureArgument>& arguments,
                            const std::vector<FlowTensor>& inputs, const storage::Layout& result);

}  // namespace acltape::analyzer::executions
