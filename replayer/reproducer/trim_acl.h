// The rows of a trimmed trace of the ACL level. The kept leaves become plain calls on one stream,
// in the order in which they took effect: captures, executions, updates, events and waits are gone,
// and with them every freedom of order. A leaf that ran inside of an executed graph becomes a call
// of its own for each execution.
#pragma once

#include <map>

#include "replayer/reproducer/trim.h"
#include "storage/trace_copy.h"

namespace acltape::replayer::reproducer {

// The waits of the program are gone. One for the device is put before each call that has other work
// before it and needs the wait: a synchronous copy or fill does not wait for streams (rule CPY-04),
// copies use pinned memory again that earlier copies may still need, and a replay puts stored
// contents into memory at once.
struct AclNumbers {
  std::map<int64_t, int64_t> ids;    // in the trimmed trace, by leaf
  std::map<int64_t, int64_t> waits;  // ids of the added waits, by the leaf behind them
};

// Calls keep their ids where no kept leaf ran inside of a graph and the ids before synchronous
// calls are free; otherwise all are numbered from 1.
AclNumbers NumberAclLeaves(const analyzer::Program& program, const TrimPlan& plan);

// Writes everything but meta rows. `program` is one of the ACL level with steps.
void CopyAclLeaves(storage::TraceCopy& copy, const analyzer::Program& program, const TrimPlan& plan,
                   const AclNumbers& numbers);

// A layout of so many bytes from the begin of a buffer; returns its id in the copy.
int64_t AddByteLayout(storage::TraceCopy& copy, int64_t bytes);

}  // namespace acltape::replayer::reproducer
