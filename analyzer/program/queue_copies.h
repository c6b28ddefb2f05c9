// Finds the leaves for copies from the host that a thread of the adapter put on the device.
//
// The adapter has a queue: where a leaf asks for work, the thread of the queue issues it later. An
// operator's call names its leaf, because its first phase is called where the leaf is. A copy has
// one phase, so its call has no parent. Addresses alone do not tell its leaf, because the device's
// allocator gives memory to another tensor as soon as it is freed. These facts together do:
//
// - The queue keeps the order in which the program asked. So the leaf of a copy did not end before
//   the leaf of an earlier operator of that thread began, nor begin after the leaf of a later
//   operator had ended.
// - A leaf whose own calls wrote the bytes has no copy in the queue. It may take a number on the
//   host, which `mul` gives its operator as a scalar.
// - A thread that runs leaves names them as parents. So a copy of such a thread that has no parent
//   is of no leaf; `torch.tensor` makes such copies.
// - A source without gaps that has the bytes of the copy is copied from where it lies.
//
// Where they leave more copies than leaves, none of the copies gets a leaf.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "analyzer/program/device_range.h"
#include "analyzer/program/thread_processes.h"
#include "storage/reader.h"
#include "storage/results.h"

namespace acltape::analyzer {

class QueueCopies {
 public:
  explicit QueueCopies(const storage::Reader& trace) : trace_(trace), processes_(trace) {}

  // All calls of the trace, in order, come to one of these three.
  void AddLeaf(const storage::Call& leaf);
  // A call of the device that names its leaf.
  void AddOwnCall(const storage::Call& call);
  // A copy to `filled` that names no leaf. One from a device is passed over; the result is false.
  bool AddCopy(const storage::Call& copy, const storage::TensorRef& filled);

  struct Match {
    int64_t copy = 0;
    int64_t leaf = 0;
  };
  // After all calls: the copies whose leaves are known.
  std::vector<Match> Finish();

 private:
  struct Times {
    int64_t begin = 0;
    int64_t end = 0;
  };
  // The same bytes of a device, in the same process, that are copied from the same address. The
  // address is 0 where a leaf's source is not copied as it is.
  struct Way {
    int64_t process = 0;
    int64_t first = 0;
    int64_t end = 0;
    int64_t source = 0;
    bool operator<(const Way& other) const {
      return std::tie(process, first, end, source) <
             std::tie(other.process, other.first, other.end, other.source);
    }
  };
  struct Copy {
    int64_t call = 0;
    Way way;
  };
  // The copies of a thread since its last operator.
  struct Queue {
    int64_t began = 0;  // the latest begin of a leaf whose operator the thread has issued
    std::vector<Copy> copies;
  };

  Way WayTo(const storage::Call& call, const storage::TensorRef& filled) const;
  // The first leaf that waits for the copy, 0: none. It did not end before `began`, nor begin after
  // `last`.
  int64_t Take(const Copy& copy, const Way& way, int64_t began, int64_t last);
  // Gives the copies of a queue their leaves.
  void Settle(int64_t thread, Queue& queue, int64_t last);

  const storage::Reader& trace_;
  const ThreadProcesses processes_;
  std::unordered_map<int64_t, Times> times_of_;  // by leaf
  std::unordered_set<int64_t> leaf_threads_;
  std::map<Way, std::deque<int64_t>> waiting_;  // leaves; those that have left are not in wanted_
  std::unordered_map<int64_t, DeviceRange> wanted_;  // the bytes of a leaf that waits
  std::unordered_map<int64_t, Queue> queues_;        // by thread
  std::vector<Match> matches_;
};

// Returns the tensor of a device that a call fills if it is a copy; empty for every other call.
storage::TensorRef TargetOfCopy(const storage::Reader& trace, const storage::Call& call);

// Makes the leaves that QueueCopies, QueueOperators and QueueCollectives find the parents of their
// calls, with their lines, and returns how many copies got one. Call it once, when a recording is
// complete.
int64_t NameLeavesOfQueueCopies(const storage::Reader& trace, storage::Results& results);

}  // namespace acltape::analyzer
