#include "analyzer/calls/level.h"

#include <algorithm>
#include <optional>

#include "meaning/acl_operators.h"
#include "meaning/dialects.h"
#include "meaning/options.h"
#include "storage/database.h"
#include "storage/error.h"
#include "storage/process_choice.h"

namespace acltape::analyzer {
namespace {

bool IsWithoutStorage(const storage::Reader& trace, const storage::TensorRef& tensor) {
  return tensor.layout_id != 0 && tensor.buffer_id == 0 &&
         trace.GetLayout(tensor.layout_id).ElementCount() > 0;
}

// True if a leaf of PyTorch has a tensor with elements but without a buffer. Its memory lies on a
// device, and the recording does not follow it at this level.
bool HasTensorsWithoutStorage(const storage::Reader& trace) {
  bool found = false;
  trace.VisitCalls(/*leaves_only=*/true, [&](const storage::Call& call) {
    if (found || trace.GetOp(call.op_id).dialect != "aten") return;
    if (std::find(call.buffers.begin(), call.buffers.end(), 0) == call.buffers.end()) return;
    for (const storage::Argument& argument : trace.Arguments(call)) {
      for (const storage::TensorRef& tensor : argument.tensors) {
        found = found || IsWithoutStorage(trace, tensor);
      }
    }
  });
  return found;
}

// True if the trace holds captured graphs. Their executions are not leaves of PyTorch, so at that
// level nobody knows what they write.
bool HoldsGraphs(const storage::Reader& trace) { return !trace.Models().empty(); }

}  // namespace

bool HoldsCollectives(const storage::Reader& trace) {
  const int64_t chosen = trace.process() != 0 ? trace.process() : storage::DefaultProcess(trace);
  storage::Statement one(trace.database(),
                         "SELECT EXISTS (SELECT 1 FROM communicator WHERE ?1 IN (0, process_id))");
  one.Bind(1, chosen);
  if (one.Next() && one.Integer(0) != 0) return true;
  storage::Statement operators(trace.database(), "SELECT name FROM op WHERE dialect = 'aclnn'");
  while (operators.Next()) {
    if (meaning::Communicates(operators.Text(0))) return true;
  }
  return false;
}

bool HoldsLevel(const storage::Reader& trace, Level level) {
  std::string operators;  // ids of those of the level, with commas
  storage::Statement ops(trace.database(), "SELECT op_id, dialect FROM op");
  while (ops.Next()) {
    const bool acl = meaning::IsAclDialect(ops.Text(1));
    if (level == Level::kAcl ? !acl : ops.Text(1) != "aten") continue;
    operators += (operators.empty() ? "" : ",") + std::to_string(ops.Integer(0));
  }
  if (operators.empty()) return false;
  const int64_t chosen = trace.process() != 0 ? trace.process() : storage::DefaultProcess(trace);
  if (level == Level::kAcl && chosen == 0) return true;
  storage::Statement call(trace.database(),
                          "SELECT EXISTS (SELECT 1 FROM call WHERE op_id IN (" + operators +
                              ") AND (leaf = 1 OR ?1) AND (?2 = 0 OR thread_id IN (SELECT "
                              "thread_id FROM thread WHERE process_id = ?2)))");
  call.Bind(1, static_cast<int64_t>(level == Level::kAcl));
  call.Bind(2, chosen);
  return call.Next() && call.Integer(0) != 0;
}

Level PreferredLevel(const storage::Reader& trace) {
  if (!HoldsLevel(trace, Level::kAcl)) return Level::kAten;
  if (!HoldsLevel(trace, Level::kAten)) return Level::kAcl;
  const bool acl = HoldsGraphs(trace) || HoldsCollectives(trace) || HasTensorsWithoutStorage(trace);
  return acl ? Level::kAcl : Level::kAten;
}

Level ChooseLevel(const storage::Reader& trace) {
  const std::optional<Level> wanted = trace.part().level;
  if (!wanted) return PreferredLevel(trace);
  if (HoldsLevel(trace, *wanted)) return *wanted;
  throw Error(ErrorKind::kTrace,
              trace.path() + (*wanted == Level::kAcl
                                  ? " holds no call of the ACL interface; record the program "
                                    "with @level acl, or leave out @level"_cli
                                  : " holds no leaf of PyTorch; record the program with @level "
                                    "aten, or leave out @level"_cli));
}

std::vector<storage::Step> StepsOf(const storage::Reader& trace, Level level) {
  std::vector<storage::Step> steps = trace.Steps();
  if (steps.empty() || steps[0].found_by != "period") return steps;
  // Those of a trace with several processes are of the one with a device.
  const int64_t process = trace.process();
  if (process != 0 && trace.database().Integer("SELECT count(*) FROM process") > 1) steps.clear();
  const Level other = level == Level::kAcl ? Level::kAten : Level::kAcl;
  if (HoldsLevel(trace, other) && PreferredLevel(trace) != level) steps.clear();
  return steps;
}

Level ChooseCaptureLevel(const storage::Reader& trace) {
  if (trace.part().level) return ChooseLevel(trace);
  const bool operators = trace.database().Integer("SELECT 1 FROM op WHERE dialect = 'aclnn'") != 0;
  return operators ? Level::kAcl : ChooseLevel(trace);
}

}  // namespace acltape::analyzer
