// Findings about the leaves of PyTorch, beside those about the calls of the ACL interface in the
// same trace. Captures are made of the calls; reads of the host and inputs that move are seen best
// at the leaves.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "analyzer/calls/work.h"
#include "analyzer/lint/lint.h"
#include "storage/reader.h"

namespace acltape::analyzer::lint {

// The findings name calls of the work, which the reader reads. Both are null if there was nothing
// to look at.
struct LeafFindings {
  std::unique_ptr<storage::Reader> reader;
  std::unique_ptr<Work> work;
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

// Lints the leaves of a program that executes graphs of its own, where the user asked for the
// leaves alone. Its captures are known from the calls. Nothing for every other work.
std::optional<LintReport> LintAroundGraphs(const Work& leaves, const LintOptions& options);

}  // namespace acltape::analyzer::lint
