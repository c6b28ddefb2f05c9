// The bytes that a call of the ACL interface reads and writes. They follow from its function and
// its arguments, and they are derived here alone: the work of a trace, ACL programs, their leaves
// and their plans all take them from here.
#pragma once

#include <string_view>
#include <vector>

#include "analyzer/calls/acl_calls.h"
#include "analyzer/calls/leaf_kind.h"
#include "analyzer/calls/uses.h"
#include "generated/meaning/parameter_positions.h"
#include "storage/trace.h"

namespace acltape::analyzer {

bool IsWorkspace(const storage::ArgumentValue& argument);
// True for arguments that are not part of the work itself: executor and workspace.
bool IsIncidental(const storage::ArgumentValue& argument);

// Positions of the destination and the source of a copy, in all its functions.
inline constexpr int kCopyTo = meaning::position::aclrtMemcpy::kDst;
inline constexpr int kCopyFrom = meaning::position::aclrtMemcpy::kSrc;

// The uses of a call of this function, in order of arguments. A tensor that is read and written is
// listed twice, the read first. Memory that the function overwrites (meaning/acl_operators.h) is
// written alone, also where the tensor has gaps: it does not touch the bytes between. A result that
// a flag did not ask for (kConditionalOutputs there) is not listed. Calls that are no device work
// have no uses. The host's side of a copy counts as well.
std::vector<ArgumentUse> UsesOfAclCall(std::string_view function,
                                       const std::vector<storage::Argument>& arguments);

// True for an asynchronous copy between the device and host memory that is not pinned, as far as
// the arguments tell. The host waits for the work of its stream and for the copy (rule CPY-06).
bool IsPageableCopy(const AclFunction& function, const std::vector<storage::Argument>& arguments);
bool IsPageableCopy(const AclFunction& function,
                    const std::vector<storage::SignatureArgument>& arguments);

// The uses of a leaf (analyzer/program/acl_leaves.h): those of its call, without the workspace and
// without the host's side of a copy.
std::vector<ArgumentUse> UsesOfAclLeaf(std::string_view function, LeafKind kind,
                                       const std::vector<storage::Argument>& arguments);

}  // namespace acltape::analyzer
