#include "replayer/coverage.h"

#include <algorithm>
#include <unordered_set>

#include "analyzer/calls/acl_calls.h"
#include "analyzer/calls/host_work.h"
#include "analyzer/calls/overlap.h"
#include "analyzer/calls/unknown_memory.h"

namespace acltape::replayer {
namespace {

using analyzer::LeafKind;
using analyzer::TensorUse;

std::unordered_set<int64_t> CallsInUnknownMemory(const analyzer::Program& program) {
  if (program.level != analyzer::Level::kAten) return {};
  return analyzer::CoverageOfMemory(*program.trace).unknown;
}

// A kernel that writes no element has no result that could be wrong.
bool HasElements(const TensorUse& use) { return use.layout->ElementCount() != 0; }

}  // namespace

bool BringsBytes(analyzer::AclCallKind kind) {
  using K = analyzer::AclCallKind;
  return analyzer::IsCopy(kind) || kind == K::kFill || kind == K::kFillAsync ||
         kind == K::kFill32 || kind == K::kFill32Async || kind == K::kValueWrite;
}

bool BringsBytes(const storage::Op& op) {
  const analyzer::AclCallKind kind = analyzer::FindAclFunction(op.name).kind;
  return BringsBytes(kind);
}

bool CoverageWalk::IsDead(const Uses& writes) const {
  return std::all_of(writes.begin(), writes.end(), [&](const TensorUse& use) {
    const auto lost = lost_.find(use.tensor.buffer_id);
    return lost != lost_.end() &&
           lost->second.Covers(use.layout->FirstByte(), use.layout->EndByte());
  });
}

bool CoverageWalk::Visit(const Uses& reads, const Uses& writes, Work work, bool compared) {
  const bool wrote = work != Work::kNone && std::any_of(writes.begin(), writes.end(), HasElements);
  const bool tells =
      work != Work::kNone && std::any_of(writes.begin(), writes.end(), [&](const TensorUse& use) {
        const auto told = told_.find(use.tensor.buffer_id);
        return told != told_.end() &&
               !told->second.Within(use.layout->FirstByte(), use.layout->EndByte()).empty();
      });
  const bool covered = compared || tells;
  const bool computed = wrote && work == Work::kComputes;
  const bool dead = wrote && !covered && IsDead(writes);
  for (const TensorUse& use : writes) {
    if (!HasElements(use) || !analyzer::PatternOf(*use.layout).dense()) continue;
    told_[use.tensor.buffer_id].Remove(use.layout->FirstByte(), use.layout->EndByte());
    lost_[use.tensor.buffer_id].Add(use.layout->FirstByte(), use.layout->EndByte());
  }
  for (const TensorUse& use : reads) {
    if (dead || !HasElements(use)) continue;
    lost_[use.tensor.buffer_id].Remove(use.layout->FirstByte(), use.layout->EndByte());
    if (!covered) continue;
    told_[use.tensor.buffer_id].Add(use.layout->FirstByte(), use.layout->EndByte());
  }
  coverage_.computed += computed && !dead ? 1 : 0;
  coverage_.covered += computed && covered ? 1 : 0;
  return covered;
}

void MeasureCoverage(const analyzer::Program& program,
                     const std::function<bool(int64_t leaf)>& executes, ReplayReport& report) {
  report.unseen = 0;
  int64_t unseen_alone = 0;  // leaves in unknown memory that the walk does not count
  const std::unordered_set<int64_t> unknown = CallsInUnknownMemory(program);
  CoverageWalk walk;
  for (auto leaf = program.leaves.rbegin(); leaf != program.leaves.rend(); ++leaf) {
    const bool executed = leaf->kind == LeafKind::kKernel && executes(leaf->index);
    const int64_t before = walk.coverage().computed;
    const analyzer::LeafUses& uses = program.uses[leaf->index];
    const bool covered =
        walk.Visit(uses.reads, uses.writes, CoverageWalk::WorkOf(*leaf->op, executed),
                   report.compared_calls.contains(leaf->call.call_id));
    if (covered || !unknown.contains(leaf->call.call_id)) continue;
    ++report.unseen;
    if (walk.coverage().computed == before) ++unseen_alone;
  }
  report.coverage = walk.coverage();
  report.coverage.computed += unseen_alone;
  if (program.level == analyzer::Level::kAten) {
    report.host_leaves = analyzer::TotalHostWork(*program.trace, {}).leaves;
  }
}

}  // namespace acltape::replayer
