#include <algorithm>
#include <optional>
#include <set>
#include <unordered_map>

#include "analyzer/gate/parts.h"
#include "base/median.h"

namespace acltape::analyzer::gate {
namespace {

using K = AclCallKind;

// Finds the step to which a call of the ACL level belongs in a program over an adapter. A thread of
// the adapter may issue the work of one step while the program is in the next one, so its time does
// not tell. The leaf of PyTorch whose kernel made the call does. Calls without one, such as copies,
// keep their place among the calls of their thread.
class StepOfCall {
 public:
  explicit StepOfCall(const Work& leaves) {
    for (size_t step = 0; step < leaves.steps.size(); ++step) {
      const StepRange& range = leaves.steps[step];
      ranges_.push_back({leaves.calls[static_cast<size_t>(range.first)].call_id,
                         leaves.calls[static_cast<size_t>(range.end) - 1].call_id});
    }
    for (const WorkCall& leaf : leaves.calls) program_threads_.insert(leaf.thread);
  }

  // Called for the calls in order. -1: outside of all steps.
  int64_t Of(const WorkCall& call) {
    int64_t& last = last_of_thread_.try_emplace(call.thread, -1).first->second;
    if (call.parent_id != 0) {
      last = Find(call.parent_id);
    } else if (program_threads_.contains(call.thread)) {
      last = Find(call.call_id);
    }
    return last;
  }

 private:
  int64_t Find(int64_t call_id) const {
    const auto after =
        std::upper_bound(ranges_.begin(), ranges_.end(), call_id,
                         [](int64_t id, const auto& range) { return id < range.first; });
    if (after == ranges_.begin()) return -1;
    // Calls between two steps belong to the step before them.
    return after - ranges_.begin() - 1;
  }

  std::vector<std::pair<int64_t, int64_t>> ranges_;  // the first and the last leaf of each step
  std::set<int32_t> program_threads_;
  std::unordered_map<int32_t, int64_t> last_of_thread_;
};

struct StepCounts {
  double launches = 0;
  double executions = 0;
  double executed = 0;  // operators that ran in graphs
  double updates = 0;
  double waits = 0;
};

bool IsWait(K kind) {
  return kind == K::kDeviceSync || kind == K::kStreamSync || kind == K::kEventSync;
}

}  // namespace

void MeasureDevice(const Work& calls, const Work* leaves, const SteadySteps& steady,
                   Measured& measured) {
  const std::vector<StepRange>& steps = leaves == nullptr ? calls.steps : leaves->steps;
  const bool repeats = !steady.family.steps.empty();
  std::vector<StepCounts> counts(repeats ? steps.size() : 1);
  std::unordered_map<int64_t, double> operators_of;  // by graph
  std::set<int64_t> streams;
  std::set<int64_t> graphs;
  std::optional<StepOfCall> step_of;
  if (leaves != nullptr) step_of.emplace(*leaves);
  std::vector<int64_t> step_of_call(calls.size(), -1);
  for (size_t step = 0; leaves == nullptr && step < steps.size(); ++step) {
    for (int64_t call = steps[step].first; call < steps[step].end; ++call) {
      step_of_call[static_cast<size_t>(call)] = static_cast<int64_t>(step);
    }
  }
  std::set<int64_t> updated;  // streams on which launches update tasks of a graph
  double captured = 0;
  for (size_t i = 0; i < calls.size(); ++i) {
    const WorkCall& call = calls.calls[i];
    const K kind = calls.form(i).acl_kind();
    const int64_t step = !repeats ? 0 : step_of ? step_of->Of(call) : step_of_call[i];
    if (call.status != 0) continue;
    const bool work = IsDeviceWork(kind) || IsExecution(kind);
    if (work && call.stream_id != 0) streams.insert(call.stream_id);
    if (call.model_id != 0) {
      if (kind != K::kOperator) continue;
      operators_of[call.model_id] += 1;
      captured += 1;
      graphs.insert(call.model_id);
      continue;
    }
    if (step < 0) continue;
    StepCounts& count = counts[static_cast<size_t>(step)];
    if (kind == K::kUpdateBegin) updated.insert(call.stream_id);
    if (kind == K::kUpdateEnd) updated.erase(call.stream_id);
    if (kind == K::kOperator && !updated.contains(call.stream_id)) count.launches += 1;
    if (IsWait(kind)) count.waits += 1;
    if (kind == K::kUpdateBegin) count.updates += 1;
    if (IsExecution(kind)) {
      count.executions += 1;
      const auto held = operators_of.find(calls.form(i).Integer(calls.form(i).function->object));
      if (held != operators_of.end()) count.executed += held->second;
    }
  }
  const auto value = [&](const std::function<double(const StepCounts&)>& of) {
    std::vector<double> each;
    for (const size_t step : steady.family.steps) each.push_back(of(counts[step]));
    if (!repeats) each.push_back(of(counts[0]));
    return base::UpperMedian(each);
  };
  std::map<std::string, double>& values = measured.values;
  values["program.graphs"] = static_cast<double>(graphs.size());
  values["program.captured_launches"] = captured;
  values["program.streams"] = static_cast<double>(streams.size());
  values["step.launches"] = value([](const StepCounts& one) { return one.launches; });
  values["step.executions"] = value([](const StepCounts& one) { return one.executions; });
  values["step.task_updates"] = value([](const StepCounts& one) { return one.updates; });
  values["step.host_waits"] = value([](const StepCounts& one) { return one.waits; });
  values["step.captured"] = value([](const StepCounts& one) {
    const double all = one.executed + one.launches;
    return all == 0 ? 0 : static_cast<double>(static_cast<int64_t>(1000 * one.executed / all)) / 10;
  });
}

}  // namespace acltape::analyzer::gate
