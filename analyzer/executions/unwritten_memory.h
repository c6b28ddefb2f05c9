// Finds memory of the ACL interface that nothing wrote since it was allocated and that comes to the
// host: a value that an operator made of such bytes, or a copy of nothing but such bytes.
// undefined_reads.h does the same for tensors of PyTorch.
//
// Memory begins undefined where a call allocates it. A copy takes that along; a fill, a copy from
// the host and an operator's result end it. An operator of known element flow (acl_flow.h) marks
// what it computes of undefined elements. What any other operator reads and writes counts as
// defined, and so do the workspace of an operator, memory that a call names which is no work of the
// device (it may be given to another library), memory of an import, and all memory where the
// program's own kernels or functions run, or where a recording was closed. An element of a range
// that is copied to the host is looked at only where an operator has read it: a program may copy a
// buffer whole and use the part that it filled.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "analyzer/executions/own_graphs.h"
#include "analyzer/executions/undefined_reads.h"

namespace acltape::analyzer::executions {

// Visits the calls that were issued outside of captures, in an order in which their work may take
// effect.
using VisitInOrder = std::function<void(const std::function<void(size_t call)>& visit)>;

// There is at most one row for each allocating call. `graphs` are over calls of the interface.
// Where `reader` and `host_read` are the same call, it copies bytes that nothing wrote, and the
// elements are bytes. The search ends when it has looked at 2^27 elements.
std::vector<UndefinedRead> FindUnwrittenReads(const OwnGraphs& graphs, const VisitInOrder& visit);

}  // namespace acltape::analyzer::executions
