// Turns leaves of an ACL program into calls of operators.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "analyzer/lowering/lowering.h"

namespace acltape::analyzer::lowering {

// A recorded call of an operator as an invocation: its arguments without workspace and executor.
Invocation InvocationOf(const storage::Reader& trace, const storage::Op& op,
                        const std::vector<storage::Argument>& arguments);

// An operator is lowered to itself, as it was recorded. A copy, a fill or a value write is lowered
// to an operator that leaves the same bytes, so that it can be moved between streams and captured
// like any other. The result is empty, and `why` says so, for a call without a tensor over known
// memory. Precondition: leaf.kind is kKernel.
std::optional<Lowering> LowerAclLeaf(const Program& program, const Leaf& leaf, std::string* why);

// The bytes that a fill or a value write puts into its range, in order of address. Precondition:
// the leaf is one of these.
std::shared_ptr<const std::vector<uint8_t>> FilledBytes(const Leaf& leaf,
                                                        const storage::Layout& range);

}  // namespace acltape::analyzer::lowering
