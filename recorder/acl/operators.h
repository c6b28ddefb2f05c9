// Records the two phases of an operator as one call. The record is made at the launch, from the
// arguments of the first phase; see docs/schema.md, "Calls of the ACL level".
#pragma once

#include "acl/invoke/arg_value.h"

namespace acltape::acl_agent {

// `caller`: the address to which the first phase returns.
aclnnStatus Prepare(uint32_t op, const acl::ArgValue* values, uint64_t* workspace_size,
                    aclOpExecutor** executor, const void* caller);
// `repeated`: the arguments of operators whose second phase takes them again, else null.
aclnnStatus Launch(uint32_t op, const acl::ArgValue* repeated, void* workspace,
                   uint64_t workspace_size, aclOpExecutor* executor, aclrtStream stream);

// Called by objects.cpp when the program changes an executor between its phases.
void MakeRepeatable(aclOpExecutor* executor);
void DropExecutor(aclOpExecutor* executor);
// An address of the executor's tensor is another from now on. `element` is the position in `tensor`
// where that is a list, else -1.
void MoveTensor(aclOpExecutor* executor, const void* tensor, int64_t element, void* address);
void ForgetExecutorLocks();

}  // namespace acltape::acl_agent
