#include "replayer/acl_level/acl_coverage.h"

#include <algorithm>
#include <vector>

#include "analyzer/acl/acl_order.h"
#include "replayer/coverage.h"

namespace acltape::replayer::acl_level {
namespace {

using analyzer::AclCall;
using analyzer::AclProgram;
using analyzer::AclTurn;
using K = analyzer::AclCallKind;

// Takes the device work in the order of the calls, for a program whose work has no other one: a
// wait is never released, or the device chooses what a graph runs. Each execution has a turn of its
// own, after the calls that it runs in any case.
std::vector<AclTurn> TurnsAsIssued(const AclProgram& program) {
  std::vector<AclTurn> turns;
  for (const AclCall& call : program.calls) {
    if (call.fate != analyzer::AclFate::kIssued) continue;
    if (analyzer::IsExecution(call.kind())) {
      for (const int64_t held : program.CertainCalls(call.Integer(call.function->object))) {
        if (!analyzer::ChangesMemory(program.calls[held].kind())) continue;
        turns.push_back({held, call.index, {}, false});
      }
      turns.push_back({call.index, -1, {}, false});
    } else if (analyzer::ChangesMemory(call.kind()) && call.call.model_id == 0 && call.group < 0) {
      turns.push_back({call.index, -1, {}, false});
    }
  }
  return turns;
}

std::vector<AclTurn> TurnsOf(const AclProgram& program) {
  try {
    return analyzer::OrderOfWork(program);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::kTrace) throw;
    return TurnsAsIssued(program);
  }
}

// The work of a call that the device executes. The host brings what a copy from it writes, and
// random numbers count as values of the recording, as they do among leaves.
CoverageWalk::Work WorkOf(const AclProgram& program, const AclCall& call) {
  using Work = CoverageWalk::Work;
  if (call.suspect || call.fate != analyzer::AclFate::kIssued) return Work::kNone;
  if (call.kind() == K::kRandom) return Work::kNone;
  if (!analyzer::IsCopy(call.kind())) {
    return BringsBytes(call.kind()) ? Work::kCarries : Work::kComputes;
  }
  const auto on_device = [&](int position) {
    const analyzer::TensorUse* use = call.Use(position);
    return use != nullptr && !program.buffers.at(use->tensor.buffer_id).host;
  };
  const bool stays = on_device(analyzer::kCopyFrom) && on_device(analyzer::kCopyTo);
  return stays ? Work::kCarries : Work::kNone;
}

// Returns what the calls of a graph read that the device may run or not.
CoverageWalk::Uses ReadsOfBranches(const AclProgram& program, const AclCall& execution) {
  const int64_t model = execution.Integer(execution.function->object);
  const std::vector<int64_t> certain = program.CertainCalls(model);
  const std::unordered_set<int64_t> runs(certain.begin(), certain.end());
  CoverageWalk::Uses reads;
  for (const int64_t stored : program.StoredCalls(model)) {
    if (runs.contains(stored)) continue;
    const CoverageWalk::Uses& own = program.calls[stored].reads;
    reads.insert(reads.end(), own.begin(), own.end());
  }
  return reads;
}

}  // namespace

analyzer::Coverage CoverageOf(const AclProgram& program,
                              const std::function<bool(const AclCall&)>& executes,
                              const std::unordered_set<const storage::Snapshot*>& compared) {
  CoverageWalk walk;
  const auto was_compared = [&](const AclCall& call) {
    return std::any_of(
        call.after.begin(), call.after.end(),
        [&](const storage::Snapshot& snapshot) { return compared.contains(&snapshot); });
  };
  std::unordered_set<int64_t> executions;
  // Tells of what an execution left, before the last call that it ran.
  const auto tell_of = [&](int64_t execution) {
    if (!executions.insert(execution).second) return;
    for (const storage::Snapshot& snapshot : program.calls[execution].after) {
      if (!compared.contains(&snapshot)) continue;
      const storage::Layout& layout = program.trace->GetLayout(snapshot.tensor.layout_id);
      walk.Tell(snapshot.tensor.buffer_id, layout.FirstByte(), layout.EndByte());
    }
  };
  const std::vector<AclTurn> turns = TurnsOf(program);
  for (auto turn = turns.rbegin(); turn != turns.rend(); ++turn) {
    const AclCall& call = program.calls[turn->call];
    if (analyzer::IsExecution(call.kind())) {
      tell_of(call.index);
      walk.Visit(ReadsOfBranches(program, call), {}, CoverageWalk::Work::kNone, was_compared(call));
      continue;
    }
    if (turn->execution >= 0) tell_of(turn->execution);
    const bool seen = turn->execution < 0 && was_compared(call);
    const auto work = executes(call) ? WorkOf(program, call) : CoverageWalk::Work::kNone;
    walk.Visit(call.reads, call.writes, work, seen);
  }
  return walk.coverage();
}

}  // namespace acltape::replayer::acl_level
