// The rows of a trimmed trace of the ACL level. The kept leaves become plain calls on one stream,
// in the order in which they took effect: captures, executions, updates, events and waits are gone,
// and with them every freedom of order. A leaf that ran inside of an executed graph becomes a call
// of its own for each execution.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "replayer/reproducer/trim.h"
#include "storage/trace_copy.h"

namespace acltape::replayer::reproducer {

// The waits of the program are gone. One for the device is put before each call that has other work
// before it and needs the wait: a synchronous copy or fill does not wait for streams (rule CPY-04),
// copies use pinned memory again that earlier copies may still need, and a replay puts stored
// contents into memory at once.
struct AclNumbers {
  std::map<int64_t, int64_t> ids;    // in the trimmed trace, by leaf
  std::map<int64_t, int64_t> waits;  // ids of the added waits, by the leaf that follows them
};

// Calls keep their ids where no kept leaf ran inside of a graph and the ids before synchronous
// calls are free; otherwise all are numbered from 1.
AclNumbers NumberAclLeaves(const analyzer::Program& program, const TrimPlan& plan);

// Layouts that the copy has and its source does not.
class AddedLayouts {
 public:
  // `copy` must live as long and have the layouts of its source, before the first one is added.
  explicit AddedLayouts(storage::TraceCopy& copy) : copy_(copy) {}

  // Adds a row; returns its id.
  int64_t Add(const storage::Layout& layout);
  // The id of the layout of so many bytes from a byte of a buffer on. Each range is added once.
  int64_t OfRange(int64_t first_byte, int64_t bytes);

 private:
  storage::TraceCopy& copy_;
  std::map<std::pair<int64_t, int64_t>, int64_t> ranges_;  // ids by first byte and bytes
};

// Writes everything but meta rows. `program` is one of the ACL level with steps.
void CopyAclLeaves(storage::TraceCopy& copy, const analyzer::Program& program, const TrimPlan& plan,
                   const AclNumbers& numbers, AddedLayouts& layouts);

}  // namespace acltape::replayer::reproducer
