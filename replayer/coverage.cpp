#include "replayer/coverage.h"

#include <algorithm>
#include <unordered_set>

#include "analyzer/calls/host_work.h"
#include "analyzer/calls/unknown_memory.h"

namespace acltape::replayer {
namespace {

using analyzer::LeafKind;
using analyzer::TensorUse;

std::unordered_set<int64_t> CallsInUnknownMemory(const analyzer::Program& program) {
  if (program.level != analyzer::Level::kAten) return {};
  return analyzer::CoverageOfMemory(*program.trace).unknown;
}

}  // namespace

void MeasureCoverage(const analyzer::Program& program,
                     const std::function<bool(int64_t leaf)>& executes, ReplayReport& report) {
  report.computed = report.covered = report.unseen = 0;
  const std::unordered_set<int64_t> unknown = CallsInUnknownMemory(program);
  std::unordered_set<int64_t> told;  // buffers of whose content a compared output tells
  for (auto leaf = program.leaves.rbegin(); leaf != program.leaves.rend(); ++leaf) {
    const analyzer::LeafUses& uses = program.uses[leaf->index];
    const bool executed = leaf->kind == LeafKind::kKernel && executes(leaf->index);
    const bool covered =
        report.compared_calls.contains(leaf->call.call_id) ||
        (executed && std::any_of(uses.writes.begin(), uses.writes.end(), [&](const TensorUse& use) {
           return told.contains(use.tensor.buffer_id);
         }));
    if (covered) {
      for (const TensorUse& use : uses.reads) told.insert(use.tensor.buffer_id);
    }
    // A kernel that writes no element has no result that could be wrong.
    const bool computed =
        executed && std::any_of(uses.writes.begin(), uses.writes.end(), [](const TensorUse& use) {
          return use.layout->ElementCount() != 0;
        });
    const bool unseen = !covered && unknown.contains(leaf->call.call_id);
    report.computed += computed || unseen ? 1 : 0;
    report.covered += computed && covered ? 1 : 0;
    report.unseen += unseen ? 1 : 0;
  }
  if (program.level == analyzer::Level::kAten) {
    report.host_leaves = analyzer::TotalHostWork(*program.trace, {}).leaves;
  }
}

}  // namespace acltape::replayer
