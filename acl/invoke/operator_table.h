// The operators that the project knows: names, arguments, and how to call the first phase of each
// with packed arguments. Generated from acl/data/aclnn_ops.json; immutable, usable from any thread.
#pragma once

#include <cstdint>
#include <string_view>

#include "acl/invoke/arg_value.h"

namespace acltape::acl {

struct ArgInfo {
  std::string_view name;
  ArgKind kind;
  Direction direction;
  bool optional;  // NULL is accepted
};

// Calls `function`, which must be the operator's aclnnXGetWorkspaceSize, with `args` in table
// order.
using PrepareTrampoline = aclnnStatus (*)(void* function, const ArgValue* args,
                                          uint64_t* workspace_size, aclOpExecutor** executor);

// Calls `function`, which must be the operator's second phase. `args` are read only by the
// operators whose second phase repeats them (OperatorInfo::launch_repeats_args); else it may be
// null.
using LaunchTrampoline = aclnnStatus (*)(void* function, const ArgValue* args, void* workspace,
                                         uint64_t workspace_size, aclOpExecutor* executor,
                                         aclrtStream stream);

struct OperatorInfo {
  std::string_view name;            // "aclnnAdd"
  std::string_view workspace_name;  // "aclnnAddGetWorkspaceSize"
  std::string_view header;          // "aclnnop/aclnn_add.h"
  std::string_view domain;          // "math", "nn", "transformer" or "cv"
  uint32_t index;                   // position in the table, in order of names
  uint32_t arg_count;
  const ArgInfo* args;
  bool experimental;         // not part of the vendor's stable set
  bool launch_repeats_args;  // second phase takes the arguments again, before the stream
  PrepareTrampoline prepare;
  LaunchTrampoline launch;
};

// Null when the table has no such operator. Takes the plain name, without "GetWorkspaceSize".
const OperatorInfo* FindOperator(std::string_view name);

// Precondition: index < OperatorCount().
const OperatorInfo& OperatorAt(uint32_t index);

uint32_t OperatorCount();

}  // namespace acltape::acl
