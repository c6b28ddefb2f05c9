// How much of a program a comparison saw.
//
// A leaf computed when its operator ran on the device; views, allocations, values of the recording
// (sources, substituted leaves), reads by the host, copies and fills computed nothing. A compared
// output tells of the leaf that wrote it, and of each leaf whose result it was made of: an error
// there would have shown. So results that are overwritten in place, or that live inside a step,
// count by what was made of them. A result that is overwritten before anything reads it can reach
// no output. Its leaf counts only where the result itself is compared. What a collective gives
// comes from the recording: its readers tell nothing of what it was given.
#pragma once

#include <functional>
#include <unordered_map>

#include "analyzer/calls/acl_calls.h"
#include "analyzer/calls/byte_set.h"
#include "analyzer/calls/coverage.h"
#include "analyzer/program/program.h"
#include "replayer/values/replay_report.h"

namespace acltape::replayer {

// True of copies, fills and value writes of the ACL interface, which bring bytes.
bool BringsBytes(analyzer::AclCallKind kind);
bool BringsBytes(const storage::Op& op);

// Visits leaves from the last one to the first one, with what they read and write, and counts those
// that computed.
class CoverageWalk {
 public:
  using Uses = std::vector<analyzer::TensorUse>;

  enum class Work : uint8_t {
    kNone,      // the recording gave its results
    kCarries,   // it ran on the device and only brought bytes
    kComputes,  // an operator of the device ran it
  };
  // `compared`: one of its results was compared. Returns true if compared outputs tell of the leaf.
  bool Visit(const Uses& reads, const Uses& writes, Work work, bool compared);
  // The work of a leaf with this operator, if it was executed.
  static Work WorkOf(const storage::Op& op, bool executed) {
    return !executed ? Work::kNone : BringsBytes(op) ? Work::kCarries : Work::kComputes;
  }
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
