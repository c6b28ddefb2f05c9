// The leaves of PyTorch that a batch of messages is for. The call of HCCL has the first of them as
// its parent (analyzer/program/queue_collectives.h).
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "analyzer/program/thread_processes.h"
#include "storage/reader.h"

namespace acltape::analyzer {

class BatchLeaves {
 public:
  explicit BatchLeaves(const storage::Reader& trace);

  // The leaves that `call` is for. Of a call that is no batch, that is its parent. Empty if that is
  // not known.
  std::vector<int64_t> Of(const storage::Call& call) const;

 private:
  const storage::Reader& trace_;
  const ThreadProcesses processes_;
  std::map<int64_t, std::vector<int64_t>> messages_;  // leaves by process, in order
};

}  // namespace acltape::analyzer
