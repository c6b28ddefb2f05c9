#include "analyzer/steps.h"

#include <algorithm>
#include <unordered_map>

#include "analyzer/level.h"
#include "analyzer/period.h"
#include "storage/results.h"

namespace acltape::analyzer {
namespace {

class Symbols {
 public:
  int32_t Of(int64_t op_id) {
    return symbols_.try_emplace(op_id, static_cast<int32_t>(symbols_.size())).first->second;
  }

 private:
  std::unordered_map<int64_t, int32_t> symbols_;
};

std::vector<StepRange> RecordedSteps(const Program& program) {
  std::vector<StepRange> ranges;
  for (const storage::Step& step : StepsOf(*program.trace, Level::kAten)) {
    const auto by_call = [](const Leaf& leaf, int64_t call) { return leaf.call.call_id < call; };
    const auto first =
        std::lower_bound(program.leaves.begin(), program.leaves.end(), step.first_call, by_call);
    const auto end = std::lower_bound(first, program.leaves.end(), step.last_call + 1, by_call);
    if (first == end) continue;
    StepRange range;
    range.step = step.step;
    range.first_leaf = first - program.leaves.begin();
    range.end_leaf = end - program.leaves.begin();
    range.found_by = step.found_by;
    ranges.push_back(range);
  }
  return ranges;
}

// The sequence of a work, and the call of each of its places.
struct Places {
  OperatorSequence sequence;
  std::vector<size_t> calls;
};

Places PlacesOf(const Work& work) {
  Places places;
  Symbols symbols;
  std::vector<int32_t> symbol_of_form;
  for (const WorkForm& form : work.forms) symbol_of_form.push_back(symbols.Of(form.op->op_id));
  const bool acl = work.dialect == Dialect::kAcl;
  for (size_t call = 0; call < work.size(); ++call) {
    const WorkForm& form = work.form(call);
    if (acl && !RepeatsWithTheStep(form.acl_kind())) continue;
    const bool host_read = acl ? WaitsOnHost(form.acl_kind()) : form.kind == LeafKind::kHostRead;
    places.sequence.Add(symbol_of_form[work.calls[call].form],
                        host_read || form.kind == LeafKind::kKernel, host_read);
    places.calls.push_back(call);
  }
  return places;
}

void WriteSteps(const std::vector<storage::Step>& rows, const storage::Reader& trace,
                storage::Results* results) {
  if (results == nullptr || rows.empty() || rows[0].found_by != "period" ||
      !trace.Steps().empty()) {
    return;
  }
  results->ReplaceSteps(rows);
}

}  // namespace

std::vector<StepRange> FindSteps(const Program& program) {
  std::vector<StepRange> steps = RecordedSteps(program);
  if (!steps.empty()) return steps;
  OperatorSequence sequence;
  Symbols symbols;
  for (const Leaf& leaf : program.leaves) {
    const bool host_read = leaf.kind == LeafKind::kHostRead;
    sequence.Add(symbols.Of(leaf.call.op_id), host_read || leaf.kind == LeafKind::kKernel,
                 host_read);
  }
  for (const auto& [first, end] : FindPeriods(sequence)) {
    steps.push_back({static_cast<int64_t>(steps.size()), static_cast<int64_t>(first),
                     static_cast<int64_t>(end), "period"});
  }
  return steps;
}

std::vector<WorkStep> FindSteps(const Work& work) {
  if (!work.steps.empty()) return work.steps;
  const Places places = PlacesOf(work);
  std::vector<WorkStep> steps;
  for (const auto& [first, end] : FindPeriods(places.sequence)) {
    const size_t first_call = places.calls[first];
    if (!steps.empty()) steps.back().end = first_call;
    steps.push_back(
        {static_cast<int64_t>(steps.size()), first_call, places.calls[end - 1] + 1, "period"});
  }
  return steps;
}

void AssignSteps(Program& program, storage::Results* results) {
  program.steps = FindSteps(program);
  for (Leaf& leaf : program.leaves) leaf.step = -1;
  std::vector<storage::Step> rows;
  for (size_t s = 0; s < program.steps.size(); ++s) {
    const StepRange& range = program.steps[s];
    for (int64_t i = range.first_leaf; i < range.end_leaf; ++i) {
      program.leaves[i].step = static_cast<int64_t>(s);
    }
    rows.push_back({range.step, program.leaves[range.first_leaf].call.call_id,
                    program.leaves[range.end_leaf - 1].call.call_id, range.found_by});
  }
  WriteSteps(rows, *program.trace, results);
}

void AssignSteps(Work& work, storage::Results* results) {
  work.steps = FindSteps(work);
  for (WorkCall& call : work.calls) call.step = -1;
  std::vector<storage::Step> rows;
  for (const WorkStep& step : work.steps) {
    for (size_t call = step.first; call < step.end; ++call) {
      work.calls[call].step = static_cast<int32_t>(step.step);
    }
    rows.push_back({step.step, work.calls[step.first].call_id, work.calls[step.end - 1].call_id,
                    step.found_by});
  }
  WriteSteps(rows, *work.trace, results);
}

}  // namespace acltape::analyzer
