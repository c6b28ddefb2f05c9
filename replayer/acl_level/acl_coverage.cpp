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
// wait is never released, or the device chooses what a graph runs.
std::vector<AclTurn> TurnsAsIssued(const AclProgram& program) {
  std::vector<AclTurn> turns;
  for (const AclCall& call : program.calls) {
    if (call.fate != analyzer::AclFate::kIssued) continue;
    if (call.kind() == K::kExecute || call.kind() == K::kExecuteNow) {
      for (const int64_t held : program.CertainCalls(call.Integer(call.function->object))) {
        if (!analyzer::ChangesMemory(program.calls[held].kind())) continue;
        turns.push_back({held, call.index, {}, false});
      }
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

// True if the work computes on the device. The host brings what a copy from it writes, and random
// numbers count as values of the recording at both levels.
bool Computes(const AclProgram& program, const AclCall& call) {
  if (call.suspect || call.fate != analyzer::AclFate::kIssued) return false;
  if (call.kind() == K::kRandom || call.kind() == K::kValueWrite) return false;
  if (!analyzer::IsCopy(call.kind())) return true;
  const auto on_device = [&](int position) {
    const analyzer::TensorUse* use = call.Use(position);
    return use != nullptr && !program.buffers.at(use->tensor.buffer_id).host;
  };
  return on_device(analyzer::kCopyFrom) && on_device(analyzer::kCopyTo);
}

}  // namespace

analyzer::Coverage CoverageOf(const AclProgram& program,
                              const std::function<bool(const AclCall&)>& executes,
                              const std::unordered_set<const storage::Snapshot*>& compared) {
  CoverageWalk walk;
  std::unordered_set<int64_t> executions;
  const std::vector<AclTurn> turns = TurnsOf(program);
  for (auto turn = turns.rbegin(); turn != turns.rend(); ++turn) {
    if (turn->execution >= 0 && executions.insert(turn->execution).second) {
      for (const storage::Snapshot& snapshot : program.calls[turn->execution].after) {
        if (!compared.contains(&snapshot)) continue;
        const storage::Layout& layout = program.trace->GetLayout(snapshot.tensor.layout_id);
        walk.Tell(snapshot.tensor.buffer_id, layout.FirstByte(), layout.EndByte());
      }
    }
    const AclCall& call = program.calls[turn->call];
    const bool seen = turn->execution < 0 && std::any_of(call.after.begin(), call.after.end(),
                                                         [&](const storage::Snapshot& snapshot) {
                                                           return compared.contains(&snapshot);
                                                         });
    walk.Visit(call.reads, call.writes, Computes(program, call) && executes(call), seen);
  }
  return walk.coverage();
}

}  // namespace acltape::replayer::acl_level
