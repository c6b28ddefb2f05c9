// How many threads the libtorch of the process computes with, for traces of the ACL level alone:
// the order of additions depends on it, so a replay on the soft device needs it. Where the level of
// PyTorch is recorded too its plug-in reports them (recorder/torch/leaf.cpp).
#pragma once

#include "recorder/acl/thread.h"

namespace acltape::acl_agent {

// Reports the numbers of threads at the first launch of an operator and from time to time, when
// they have changed. Costs a comparison otherwise. A process without libtorch has none.
void ReportTorchThreads(Thread& thread, uint64_t call_id);

}  // namespace acltape::acl_agent
