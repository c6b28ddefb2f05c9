// Copies of memory that still holds what an earlier tensor left there. A compiler that keeps the
// order of writes by copies (torch.compile's functionalisation) copies a tensor of torch.empty
// before an operator fills the copy. What such a copy holds was computed by nobody.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>

#include "analyzer/calls/byte_set.h"
#include "analyzer/calls/work.h"
#include "analyzer/lint/load.h"

namespace acltape::analyzer::lint {

class Leftovers {
 public:
  // `work` are leaves of PyTorch, or calls of the ACL interface with the leaves beside them; null:
  // it loads these itself when the first call is asked for. `calls` are the calls of the interface,
  // null if they are not known. All must outlive the object.
  Leftovers(const Work& work, std::shared_ptr<LeavesBeside> beside, const Work* calls)
      : work_(work), beside_(std::move(beside)), calls_(calls) {}

  // True if the call, or the leaf in which the interface was called, only copies, and reads memory
  // of a device in which nothing was written between its allocation and the copy. Memory of which
  // the allocation is not known counts as written. So does all memory of a program that launches
  // kernels outside of leaves, because nobody knows what they write.
  bool AreCopiedBy(size_t call);

 private:
  const Work* Leaves();
  bool LaunchesUnknownKernels(const Work& leaves) const;
  ByteSet UnwrittenBytes(const Work& leaves, uint32_t leaf, const ByteAccess& source);
  void LeaveOutCalls(const Work& leaves, int64_t first_call, int64_t end_call,
                     ByteSet& bytes) const;

  const Work& work_;
  std::shared_ptr<LeavesBeside> beside_;
  const Work* calls_;
  bool loaded_ = false;
  const Work* leaves_ = nullptr;  // null: there are none, or kernels write what nobody knows
  std::unordered_map<int64_t, uint32_t> first_entries_;  // by buffer
};

}  // namespace acltape::analyzer::lint
