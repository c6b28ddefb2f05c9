// Findings about the leaves of PyTorch, beside those about the calls of the ACL interface in the
// same trace. Captures are made of the calls; reads of the host and inputs that move are seen best
// at the leaves.
#pragma once

#include <functional>
#include <memory>

#include "analyzer/calls/work.h"
#include "analyzer/lint/lint.h"
#include "analyzer/lint/load.h"

namespace acltape::analyzer::lint {

// The findings name calls of the work. It is null if there was nothing to look at.
struct LeafFindings {
  std::shared_ptr<LeavesBeside> beside;  // owns the work
  const Work* work = nullptr;
  LintReport report;
};

// Makes the filter of stretches (LintOptions::wanted) for the leaves.
using WantedLeaves = std::function<std::function<bool(const Stretch&)>(const Work& leaves)>;

// True if nobody chose a level, and the trace holds leaves beside the calls of `calls`.
bool HasLeavesBeside(const Work& calls);

// Lints the leaves. `first` is the report about the calls, with at least one stretch. Left out is
// what `first` names in the same mode at the same line. If the program captures graphs itself, the
// findings are about what goes on between its graphs.
LeafFindings LintLeavesBeside(const Work& calls, const LintReport& first, LintOptions options,
                              const WantedLeaves& wanted);

// Lints the work of one level, as `acltape lint` does. Where the user asked for the leaves alone of
// a program that executes graphs of its own, the findings are about what goes on between these; its
// captures are known from the calls.
LintReport LintLevel(const Work& work, const LintOptions& options);

}  // namespace acltape::analyzer::lint
