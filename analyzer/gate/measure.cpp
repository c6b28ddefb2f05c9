#include "analyzer/gate/measure.h"

#include <fmt/format.h>

#include <map>
#include <optional>
#include <set>

#include "analyzer/calls/level.h"
#include "analyzer/gate/parts.h"
#include "analyzer/lint/load.h"
#include "analyzer/program/acl_leaves.h"
#include "analyzer/steps/steps.h"
#include "analyzer/steps/thread_groups.h"
#include "storage/database.h"
#include "storage/process_ranks.h"

namespace acltape::analyzer::gate {
namespace {

// True if the program captured graphs itself. Then lint looks at those.
bool HasCaptures(const Work& calls) {
  for (size_t call = 0; call < calls.size(); ++call) {
    if (calls.form(call).acl_kind() == AclCallKind::kCaptureBegin) return true;
  }
  return false;
}

// Lint has nothing to say about a program without work.
void MeasureFindingsOf(const Work& work, const std::function<bool(size_t call)>& counts,
                       Measured& measured) {
  for (size_t call = 0; call < work.size(); ++call) {
    if (counts(call)) return MeasureFindings(work, counts, measured);
  }
}

void MeasureSteps(const Work& work, const SteadySteps& steady, Measured& measured) {
  measured.steps = static_cast<int64_t>(work.steps.size());
  measured.steady_steps = static_cast<int64_t>(steady.family.steps.size());
  measured.basis = steady.family.steps.empty() ? "program" : "step";
}

// Leaves out what depends on the order in which threads took turns.
void LeaveOutOrder(const Work& work, Measured& measured) {
  if (!ThreadGroups(work).SideBySide()) return;
  measured.values.erase("step.graphs");
  measured.values.erase("step.bytes_peak");
  measured.causes.clear();
  measured.left_out =
      "step.graphs, step.bytes_peak and the findings of lint are not known: " + WhyNoSteps(work);
}

// Measures a program over PyTorch. Its leaves tell the steps. The order in which an adapter issues
// the work of the device varies, and so does what it asks the device in between.
void MeasureTorch(const storage::Reader& trace, Measured& measured) {
  storage::TracePart part = trace.part();
  part.level = Level::kAten;
  const storage::Reader leaves_alone(trace.path(), part);
  const Work leaves = lint::LoadStepsForLint(leaves_alone, Level::kAten, nullptr);
  const std::function<bool(size_t)> counts = WorkOfProgram(leaves);
  const SteadySteps steady = FindSteadySteps(leaves, counts);
  MeasureSteps(leaves, steady, measured);
  MeasureLeaves(leaves, steady, measured);
  MeasureFindingsOf(leaves, counts, measured);
  LeaveOutOrder(leaves, measured);
  if (!HoldsLevel(trace, Level::kAcl)) return;
  const Work calls = LoadWork(trace, Level::kAcl);
  MeasureDevice(calls, &leaves, steady, measured);
  // Only operators inside of captures: other calls there may be those of an adapter's threads.
  const auto captured = [&](size_t call) {
    return calls.calls[call].model_id != 0 && calls.form(call).acl_kind() == AclCallKind::kOperator;
  };
  if (HasCaptures(calls)) MeasureFindingsOf(calls, captured, measured);
}

// Measures a program that uses the ACL interface alone.
void MeasureAcl(const storage::Reader& trace, Measured& measured) {
  const Work calls = lint::LoadStepsForLint(trace, Level::kAcl, nullptr);
  const auto repeats = [&](size_t call) {
    return RepeatsWithTheStep(calls.form(call).acl_kind()) && calls.calls[call].status == 0;
  };
  const SteadySteps steady = FindSteadySteps(calls, repeats);
  MeasureSteps(calls, steady, measured);
  MeasureDevice(calls, nullptr, steady, measured);
  MeasureFindingsOf(
      calls, [](size_t) { return true; }, measured);
  try {
    const Program program = LoadAclLeaves(calls);
    const std::function<bool(size_t)> counts = WorkOfProgram(program.work);
    MeasureLeaves(program.work, FindSteadySteps(program.work, counts), measured);
  } catch (const Error& error) {
    // Work whose order is not known has no leaves. Their measures are not known then.
    if (error.kind() != ErrorKind::kTrace) throw;
  }
  LeaveOutOrder(calls, measured);
}

}  // namespace

storage::TracePart MainProcessOf(const std::string& path, storage::TracePart part) {
  if (!part.process.empty()) return part;
  const storage::Reader trace(path, storage::TracePart());
  storage::Statement rows(
      trace.database(),
      "SELECT p.process_id, max(ifnull(o.dialect, '') = 'aclnn') FROM call_row c "
      "JOIN signature s ON s.signature_id = c.signature_id JOIN op o ON o.op_id = s.op_id "
      "JOIN thread t ON t.thread_id = c.thread_id JOIN process p ON p.process_id = t.process_id "
      "GROUP BY p.process_id ORDER BY p.process_id");
  std::vector<int64_t> all;
  std::vector<int64_t> with_device;
  const std::map<int64_t, int64_t> rank_of = storage::RanksOfProcesses(trace.database(), path);
  std::set<int64_t> ranks;
  while (rows.Next()) {
    all.push_back(rows.Integer(0));
    if (const auto rank = rank_of.find(all.back()); rank != rank_of.end())
      ranks.insert(rank->second);
    if (rows.Integer(1) != 0) with_device.push_back(rows.Integer(0));
  }
  if (all.size() < 2 || ranks.size() > 1 || with_device.size() > 1) return part;
  part.process = std::to_string(with_device.empty() ? all.front() : with_device.front());
  return part;
}

Measured Measure(const storage::Reader& trace) {
  Measured measured;
  if (trace.process() != 0) measured.process = std::to_string(trace.process());
  const bool torch = HoldsLevel(trace, Level::kAten) && trace.part().level != Level::kAcl;
  if (torch) {
    MeasureTorch(trace, measured);
  } else {
    MeasureAcl(trace, measured);
  }
  return measured;
}

}  // namespace acltape::analyzer::gate
