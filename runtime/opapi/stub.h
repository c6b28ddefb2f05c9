// Entry points of the soft device's operator engine, called by the generated exported functions
// (aclnnXGetWorkspaceSize and aclnnX) with the operator's index in acl/invoke/operator_table.h.
#pragma once

#include <cstdint>

#include "acl/invoke/arg_value.h"

namespace acltape::opapi {

// First phase. `args` holds the operator's arguments in table order (null when it has none).
aclnnStatus Prepare(uint32_t op_index, const acltape::acl::ArgValue* args, uint64_t* workspace_size,
                    aclOpExecutor** executor);

// Second phase: submits the prepared executor to `stream`.
aclnnStatus Launch(uint32_t op_index, void* workspace, uint64_t workspace_size,
                   aclOpExecutor* executor, aclrtStream stream);

}  // namespace acltape::opapi
