// How much of a program a comparison saw.
//
// A leaf computed when its operator ran on the device; views, allocations, values of the recording
// (sources, substituted leaves), reads by the host and value writes computed nothing. A compared
// output tells of the leaf that wrote it, and of each leaf whose result it was made of: an error
// there would have shown. So results that are overwritten in place, or that live inside a step,
// count by what was made of them. A result that is overwritten before anything reads it can reach
// no output. Its leaf counts only where the result itself is compared. What a collective gives
// comes from the recording: its readers tell nothing of what it was given.
#pragma once

#include <functional>
#include <unordered_map>

#include "analyzer/calls/byte_set.h"
#include "analyzer/calls/coverage.h"
#include "analyzer/program/program.h"
#include "replayer/values/replay_report.h"

namespace acltape::replayer {

// True of an operator that writes a number of its call, for a stream that waits for this value.
bool WritesItsNumber(const storage::Op& op);

// Visits leaves from the last one to the first one, with what they read and write, and counts those
// that computed.
class CoverageWalk {
 public:
  using Uses = std::vector<analyzer::TensorUse>;

  // `executed`: an operator of the device ran it. `compared`: one of its results was compared.
  // Returns true if compared outputs tell of the leaf.
  bool Visit(const Uses& reads, const Uses& writes, bool executed, bool compared);
  // The content of these bytes was compared right after the leaf that is visited next.
  void Tell(int64_t buffer, int64_t first, int64_t end) { told_[buffer].Add(first, end); }
  const analyzer::Coverage& coverage() const { return coverage_; }

 private:
  bool IsDead(const Uses& writes) const;

  analyzer::Coverage coverage_;
  // Both are by buffer: bytes of whose content here a compared output tells, and bytes that a later
  // leaf overwrites before anything reads them.
  std::unordered_map<int64_t, analyzer::ByteSet> told_;
  std::unordered_map<int64_t, analyzer::ByteSet> lost_;
};

// Sets `coverage`, `unseen` and `host_leaves` of the report by its compared calls.
// `executes` tells of a kernel whether an operator of the device ran it.
void MeasureCoverage(const analyzer::Program& program,
                     const std::function<bool(int64_t leaf)>& executes, ReplayReport& report);

}  // namespace acltape::replayer
