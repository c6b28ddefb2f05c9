#include "analyzer/lint/engine_batches.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_map>

#include "analyzer/steps/engine_ranges.h"
#include "meaning/engine_step.h"

namespace acltape::analyzer::lint {
namespace {

using meaning::EngineForward;
using meaning::EngineForwardOf;
using meaning::EngineStep;
using meaning::EngineStepOf;

using Batch = std::pair<int64_t, std::string>;  // rows and mode

// Adds where both are known; what is not known stays so.
void AddKnown(int64_t& sum, int64_t part) { sum = sum < 0 || part < 0 ? -1 : sum + part; }

int64_t PaddingOf(int64_t rows, const EngineStep& step) {
  return rows >= 0 && step.known() && rows >= step.tokens() ? rows - step.tokens() : -1;
}

struct Execution {
  int64_t call_id = 0;
  int64_t model_id = 0;
};

std::vector<Execution> ExecutionsOf(const Work& work) {
  std::vector<Execution> executions;
  for (size_t i = 0; i < work.size(); ++i) {
    const WorkForm& form = work.form(i);
    if (!IsExecution(form.acl_kind()) || work.calls[i].status != 0) continue;
    executions.push_back({work.calls[i].call_id, form.Integer(form.function->object)});
  }
  return executions;
}

// The innermost forward around a call, of those that begin in order. Null if there is none.
const EngineRange* ForwardAround(const std::vector<EngineRange>& ranges, int64_t call_id) {
  const EngineRange* found = nullptr;
  for (const EngineRange& range : ranges) {
    if (range.first_call > call_id) break;
    if (range.last_call >= call_id && EngineForwardOf(range.name)) found = &range;
  }
  return found;
}

// The first forward inside of the step that the range with this index is.
EngineForward ForwardIn(const std::vector<EngineRange>& ranges, size_t step) {
  for (size_t i = step + 1; i < ranges.size(); ++i) {
    if (ranges[i].first_call > ranges[step].last_call) break;
    if (!ranges[step].Holds(ranges[i])) continue;
    if (const auto forward = EngineForwardOf(ranges[i].name)) return *forward;
  }
  return {};
}

// The numbers of the trace's steps, by their first calls.
std::unordered_map<int64_t, int64_t> StepNumbers(const storage::Reader& trace) {
  std::unordered_map<int64_t, int64_t> numbers;
  for (const storage::Step& step : trace.Steps()) numbers.emplace(step.first_call, step.step);
  return numbers;
}

struct BatchesOfGraphs {
  std::map<Batch, EngineBatch> batches;
  std::unordered_map<int64_t, Batch> by_model;

  void Add(int64_t model_id, const EngineForward& forward) {
    const Batch key{forward.rows, forward.graph};
    EngineBatch& batch = batches[key];
    batch.rows = forward.rows;
    batch.mode = forward.graph;
    ++batch.graphs;
    by_model.emplace(model_id, key);
  }
};

BatchesOfGraphs BatchesOf(const Work& work, const CaptureList& captures,
                          const std::vector<EngineRange>& ranges) {
  BatchesOfGraphs found;
  for (const CaptureRow& row : captures.captures) {
    if (row.launches == 0) continue;  // compilers set up memory by such captures
    const int64_t begin = work.calls[static_cast<size_t>(row.stretch.begin_call)].call_id;
    const EngineRange* around = ForwardAround(ranges, begin);
    if (around != nullptr) found.Add(row.stretch.model_id, *EngineForwardOf(around->name));
  }
  return found;
}

class StepsByKind {
 public:
  EngineSteps& Of(const EngineStep& step, const EngineForward& forward, int64_t number) {
    const auto key = std::make_tuple(step.Kind(), forward.rows, forward.graph);
    const auto [found, fresh] = index_.try_emplace(key, rows.size());
    if (fresh) {
      EngineSteps& row = rows.emplace_back();
      row.kind = step.Kind();
      row.rows = forward.rows;
      row.mode = forward.graph;
      row.first_step = number;
    }
    return rows[found->second];
  }
  std::vector<EngineSteps> rows;

 private:
  std::map<std::tuple<std::string_view, int64_t, std::string>, size_t> index_;
};

}  // namespace

EngineUse FindEngineUse(const Work& work, const CaptureList& captures) {
  EngineUse use;
  const std::vector<EngineRange> ranges = EngineRanges(*work.trace);
  const std::vector<Execution> executions = ExecutionsOf(work);
  BatchesOfGraphs graphs = BatchesOf(work, captures, ranges);
  StepsByKind kinds;
  std::vector<char> in_step(executions.size(), 0);
  const std::unordered_map<int64_t, int64_t> numbers = StepNumbers(*work.trace);
  for (size_t place = 0; place < ranges.size(); ++place) {
    const EngineRange& range = ranges[place];
    const auto step = EngineStepOf(range.name);
    if (!step) continue;
    const EngineForward forward = ForwardIn(ranges, place);
    const auto number = numbers.find(range.first_call);
    EngineSteps& row = kinds.Of(*step, forward, number != numbers.end() ? number->second : -1);
    ++row.steps;
    AddKnown(row.tokens, step->tokens());
    AddKnown(row.padding, PaddingOf(forward.rows, *step));
    std::map<Batch, int64_t> executed;
    const auto first = std::lower_bound(
        executions.begin(), executions.end(), range.first_call,
        [](const Execution& execution, int64_t call) { return execution.call_id < call; });
    for (auto it = first; it != executions.end() && it->call_id <= range.last_call; ++it) {
      in_step[static_cast<size_t>(it - executions.begin())] = 1;
      ++row.executions;
      const auto batch = graphs.by_model.find(it->model_id);
      ++executed[batch != graphs.by_model.end() ? batch->second : Batch{-1, ""}];
    }
    if (executed.empty()) ++row.eager;
    for (const auto& [key, count] : executed) {
      const auto batch = graphs.batches.find(key);
      if (batch == graphs.batches.end()) continue;
      ++batch->second.steps;
      batch->second.executions += count;
      AddKnown(batch->second.tokens, step->tokens());
      AddKnown(batch->second.padding, PaddingOf(batch->second.rows, *step));
    }
  }
  if (kinds.rows.empty()) return use;
  for (size_t i = 0; i < executions.size(); ++i) {
    const auto batch = graphs.by_model.find(executions[i].model_id);
    if (in_step[i] == 0 && batch != graphs.by_model.end()) {
      ++graphs.batches[batch->second].executions_outside;
    }
  }
  use.steps = std::move(kinds.rows);
  for (auto& [key, batch] : graphs.batches) use.batches.push_back(std::move(batch));
  return use;
}

}  // namespace acltape::analyzer::lint
