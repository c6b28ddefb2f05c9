// The work of a trace as lint looks at it: a Triton kernel that ran on the host is one operator
// (analyzer/executions/kernels_on_host.h). The command, the page, gates and replays load it here.
#pragma once

#include <memory>

#include "analyzer/calls/level.h"
#include "analyzer/calls/work.h"
#include "storage/reader.h"

namespace acltape::storage {
class Results;
}

namespace acltape::analyzer::lint {

// Work with the steps that the trace names.
Work LoadWorkForLint(const storage::Reader& trace, Level level);

// Work with steps. Those that are found by period are written to `results` unless it is null.
Work LoadStepsForLint(const storage::Reader& trace, Level level, storage::Results* results);

// The leaves of PyTorch beside the calls of the ACL interface in one trace, of the process of these
// calls: workers of the program compute on the host alone. They are loaded once, when they are
// first asked for.
class LeavesBeside {
 public:
  // The calls must outlive the object.
  explicit LeavesBeside(const Work& calls) : calls_(calls) {}

  // Null if the trace has none.
  Work* Load();

 private:
  const Work& calls_;
  bool loaded_ = false;
  std::unique_ptr<storage::Reader> reader_;
  std::unique_ptr<Work> leaves_;
};

}  // namespace acltape::analyzer::lint
