#include "analyzer/steps.h"

#include <algorithm>
#include <unordered_map>

#include "analyzer/acl_leaves.h"
#include "analyzer/level.h"
#include "analyzer/period.h"
#include "analyzer/training_steps.h"
#include "storage/database.h"
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

// The steps of an ACL program as ranges of its calls. The trace names them, or else they are
// guessed.
std::vector<storage::Step> StepsOfCalls(const storage::Reader& trace) {
  std::vector<storage::Step> steps = StepsOf(trace, Level::kAcl);
  if (!steps.empty()) return steps;
  const Work work = LoadWork(trace, Level::kAcl);
  for (const WorkStep& step : FindSteps(work)) {
    steps.push_back({step.step, work.calls[step.first].call_id, work.calls[step.end - 1].call_id,
                     step.found_by});
  }
  return steps;
}

std::vector<StepRange> RangesOf(const Program& program, const std::vector<storage::Step>& steps) {
  std::vector<StepRange> ranges;
  const LeavesByCall order(program.leaves);
  for (const storage::Step& step : steps) {
    const auto [first, end] = order.LeavesOf(step.first_call, step.last_call);
    if (first >= end) continue;
    ranges.push_back(
        {step.step, static_cast<int64_t>(first), static_cast<int64_t>(end), step.found_by});
  }
  return ranges;
}

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

// Adds the ranges of the trace. `call_ids` are those of the places, ascending.
void AddRanges(const storage::Reader& trace, const std::vector<int64_t>& call_ids,
               OperatorSequence& sequence) {
  const auto place_of = [&](int64_t call_id) {
    return static_cast<size_t>(std::lower_bound(call_ids.begin(), call_ids.end(), call_id) -
                               call_ids.begin());
  };
  storage::Statement rows(trace.database(),
                          "SELECT first_call, last_call FROM scope_range ORDER BY first_call");
  while (rows.Next()) {
    const size_t first = place_of(rows.Integer(0));
    const size_t end = place_of(rows.Integer(1) + 1);
    if (first < end) sequence.ranges.emplace_back(first, end);
  }
}

// Finds the repeated places: by phases if the program trains, else by its period.
std::vector<PlaceRange> FindPlaces(const OperatorSequence& sequence) {
  const Repetition repetition = FindRepetition(sequence);
  std::vector<PlaceRange> steps = FindTrainingSteps(sequence);
  int64_t weight = 0;
  for (const auto& [first, end] : steps) {
    for (size_t place = first; place < end; ++place) weight += sequence.Weighs(place) ? 1 : 0;
  }
  // Some programs train a little and then do something else for long.
  if (2 * weight < repetition.weight) steps.clear();
  return steps.empty() ? CutRepetition(sequence, repetition) : steps;
}

void VisitAccesses(const Program& program, size_t leaf, const OperatorSequence::Visitor& visitor) {
  const auto visit = [&](const std::vector<TensorUse>& uses, bool write) {
    for (const TensorUse& use : uses) {
      const int64_t first = use.layout->FirstByte();
      const int64_t end = use.layout->EndByte();
      if (use.tensor.buffer_id == 0 || first >= end) continue;
      visitor({use.tensor.buffer_id, first, end, write});
    }
  };
  visit(program.uses[leaf].reads, false);
  visit(program.uses[leaf].writes, true);
}

OperatorSequence SequenceOf(const Program& program) {
  OperatorSequence sequence;
  Symbols symbols;
  std::vector<int64_t> call_ids;
  for (const Leaf& leaf : program.leaves) {
    sequence.Add(symbols.Of(leaf.call.op_id), leaf.kind, leaf.call.phase);
    call_ids.push_back(leaf.call.call_id);
  }
  AddRanges(*program.trace, call_ids, sequence);
  sequence.one_place_can_be_a_step = false;
  sequence.accesses = [&program](size_t place, const OperatorSequence::Visitor& visitor) {
    VisitAccesses(program, place, visitor);
  };
  return sequence;
}

// The sequence of a work, and the call of each of its places.
struct Places {
  OperatorSequence sequence;
  std::vector<size_t> calls;
  // By graph of an ACL program: its calls. They touch memory when the graph is executed.
  std::unordered_map<int64_t, std::vector<size_t>> held_by;
};

// The graph that the call executes; 0: none.
int64_t GraphOf(const Work& work, size_t call) {
  const WorkForm& form = work.form(call);
  return form.acl_kind() == AclCallKind::kExecute ? form.Integer(form.function->object) : 0;
}

LeafKind KindOf(const WorkForm& form, Dialect dialect) {
  const bool waits = dialect == Dialect::kAcl && WaitsOnHost(form.acl_kind());
  return waits ? LeafKind::kHostRead : form.kind;
}

// The result refers to `work` and to itself, so it must not move.
std::unique_ptr<Places> PlacesOf(const Work& work) {
  auto places = std::make_unique<Places>();
  Symbols symbols;
  std::vector<int32_t> symbol_of_form;
  for (const WorkForm& form : work.forms) symbol_of_form.push_back(symbols.Of(form.op->op_id));
  std::vector<int64_t> call_ids;
  for (size_t call = 0; call < work.size(); ++call) {
    const WorkForm& form = work.form(call);
    if (work.calls[call].model_id != 0 && form.active()) {
      places->held_by[work.calls[call].model_id].push_back(call);
    }
    if (work.dialect == Dialect::kAcl && !RepeatsWithTheStep(form.acl_kind())) continue;
    places->sequence.Add(symbol_of_form[work.calls[call].form], KindOf(form, work.dialect),
                         work.calls[call].phase);
    places->calls.push_back(call);
    call_ids.push_back(work.calls[call].call_id);
  }
  AddRanges(*work.trace, call_ids, places->sequence);
  places->sequence.one_place_can_be_a_step = work.dialect == Dialect::kAcl;
  places->sequence.accesses = [&work, places = places.get()](
                                  size_t place, const OperatorSequence::Visitor& visitor) {
    const size_t call = places->calls[place];
    const auto visit = [&](const ByteAccess& access) {
      visitor({access.buffer, access.first, access.end, access.write});
    };
    const auto graph = places->held_by.find(GraphOf(work, call));
    if (graph != places->held_by.end()) {
      for (const size_t held : graph->second) work.VisitAccesses(held, visit);
    } else if (work.calls[call].model_id == 0) {
      work.VisitAccesses(call, visit);
    }
  };
  return places;
}

Level LevelOf(const Work& work) {
  return work.dialect == Dialect::kAten ? Level::kAten : Level::kAcl;
}

void WriteSteps(const std::vector<storage::Step>& rows, const storage::Reader& trace, Level level,
                storage::Results* results) {
  // The table has the steps of all processes or of none.
  if (results == nullptr || rows.empty() || rows[0].found_by != kFoundByPeriod ||
      trace.process() != 0 || !trace.Steps().empty() || PreferredLevel(trace) != level) {
    return;
  }
  results->ReplaceSteps(rows);
}

}  // namespace

std::vector<StepRange> FindSteps(const Program& program) {
  if (program.level == Level::kAcl) return RangesOf(program, StepsOfCalls(*program.trace));
  std::vector<StepRange> steps = RecordedSteps(program);
  if (!steps.empty()) return steps;
  for (const auto& [first, end] : FindPlaces(SequenceOf(program))) {
    steps.push_back({static_cast<int64_t>(steps.size()), static_cast<int64_t>(first),
                     static_cast<int64_t>(end), kFoundByPeriod});
  }
  return steps;
}

std::vector<WorkStep> FindSteps(const Work& work) {
  if (!work.steps.empty()) return work.steps;
  const std::unique_ptr<Places> places = PlacesOf(work);
  std::vector<WorkStep> steps;
  for (const auto& [first, end] : FindPlaces(places->sequence)) {
    const size_t first_call = places->calls[first];
    if (!steps.empty()) steps.back().end = first_call;
    steps.push_back({static_cast<int64_t>(steps.size()), first_call, places->calls[end - 1] + 1,
                     kFoundByPeriod});
  }
  return steps;
}

std::vector<storage::Step> StoredSteps(const Work& work) {
  return StepsOf(*work.trace, LevelOf(work));
}

void AssignSteps(Program& program, storage::Results* results) {
  std::vector<storage::Step> rows;
  const bool acl = program.level == Level::kAcl;
  if (acl) rows = StepsOfCalls(*program.trace);
  program.steps = acl ? RangesOf(program, rows) : FindSteps(program);
  for (Leaf& leaf : program.leaves) leaf.step = -1;
  for (size_t s = 0; s < program.steps.size(); ++s) {
    const StepRange& range = program.steps[s];
    for (int64_t i = range.first_leaf; i < range.end_leaf; ++i) {
      program.leaves[i].step = static_cast<int64_t>(s);
    }
    if (acl) continue;
    rows.push_back({range.step, program.leaves[range.first_leaf].call.call_id,
                    program.leaves[range.end_leaf - 1].call.call_id, range.found_by});
  }
  WriteSteps(rows, *program.trace, program.level, results);
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
  WriteSteps(rows, *work.trace, LevelOf(work), results);
}

Work LoadLeaves(const storage::Reader& trace, storage::Results* results) {
  Work work = LoadWork(trace);
  AssignSteps(work, results);
  return work.dialect == Dialect::kAcl ? WorkOfAclLeaves(work, LoadAclLeaves(trace))
                                       : std::move(work);
}

}  // namespace acltape::analyzer
