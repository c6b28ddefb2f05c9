#include "analyzer/steps/steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "analyzer/calls/host_work.h"
#include "analyzer/calls/level.h"
#include "analyzer/steps/period.h"
#include "analyzer/steps/steps_of_leaves.h"
#include "analyzer/steps/thread_groups.h"
#include "analyzer/steps/training_steps.h"
#include "storage/database.h"
#include "storage/error.h"
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
  const std::vector<Repetition> stretches = FindStretches(sequence);
  int64_t repeated = 0;
  for (const Repetition& stretch : stretches) repeated += stretch.weight;
  std::vector<PlaceRange> steps = FindTrainingSteps(sequence);
  int64_t weight = 0;
  for (const auto& [first, end] : steps) {
    for (size_t place = first; place < end; ++place) weight += sequence.weights[place];
  }
  // Some programs train a little and then do something else for long.
  if (2 * weight < repeated) steps.clear();
  if (!steps.empty()) return steps;
  for (const Repetition& stretch : stretches) {
    const size_t earliest = steps.empty() ? 0 : steps.back().second;
    const std::vector<PlaceRange> found = CutRepetition(sequence, stretch, earliest);
    steps.insert(steps.end(), found.begin(), found.end());
  }
  return steps;
}

// Tells calls that put new arguments into a captured graph from those that execute: the former lie
// between the begin and the end of an update on its stream (rule UPD-02).
class UpdatingStreams {
 public:
  // Takes the calls in their order. Returns whether the call is stored in a graph and does not
  // execute.
  bool Stores(const WorkForm& form, int64_t stream) {
    if (form.acl_kind() == AclCallKind::kUpdateBegin) streams_.insert(stream);
    if (form.acl_kind() == AclCallKind::kUpdateEnd) streams_.erase(stream);
    return streams_.contains(stream);
  }

 private:
  std::unordered_set<int64_t> streams_;
};

// The sequence of a work, and the call of each of its places.
struct Places {
  OperatorSequence sequence;
  std::vector<size_t> calls;
  std::vector<uint8_t>
      stored;  // by place: a capture or an update keeps the call, which does not execute
  // The calls of each graph of an ACL program. They touch memory when the graph is executed.
  std::unordered_map<int64_t, std::vector<size_t>> held_by;
};

// The graph that the call executes; 0: none.
int64_t GraphOf(const Work& work, size_t call) {
  const WorkForm& form = work.form(call);
  return IsExecution(form.acl_kind()) ? form.Integer(form.function->object) : 0;
}

LeafKind KindOf(const WorkForm& form, Dialect dialect) {
  const bool waits = dialect == Dialect::kAcl && WaitsOnHost(form.acl_kind());
  return waits ? LeafKind::kHostRead : form.kind;
}

// The places among which steps are looked for: those of the threads that do most of the work. The
// result refers to `work` and to itself, so it must not move.
std::unique_ptr<Places> PlacesOf(const Work& work) {
  const ThreadGroups groups(work);
  auto places = std::make_unique<Places>();
  Symbols symbols;
  UpdatingStreams updating;
  std::vector<int32_t> symbol_of_form;
  for (const WorkForm& form : work.forms) symbol_of_form.push_back(symbols.Of(form.op->op_id));
  std::vector<int64_t> call_ids;
  for (size_t call = 0; call < work.size(); ++call) {
    const WorkForm& form = work.form(call);
    if (work.calls[call].model_id != 0 && form.active()) {
      places->held_by[work.calls[call].model_id].push_back(call);
    }
    if (!groups.DoesMost(work.calls[call].thread)) continue;
    if (work.dialect == Dialect::kAcl && !RepeatsWithTheStep(form.acl_kind())) continue;
    places->sequence.Add(symbol_of_form[work.calls[call].form], KindOf(form, work.dialect),
                         work.calls[call].phase);
    const bool stored =
        updating.Stores(form, work.calls[call].stream_id) || work.calls[call].model_id != 0;
    places->stored.push_back(stored ? 1 : 0);
    const auto graph = places->held_by.find(GraphOf(work, call));
    if (graph != places->held_by.end()) {
      places->sequence.weights.back() = static_cast<int32_t>(graph->second.size());
    } else if (stored) {
      places->sequence.weights.back() = 0;
    }
    places->calls.push_back(call);
    call_ids.push_back(work.calls[call].call_id);
  }
  AddRanges(*work.trace, call_ids, places->sequence);
  places->sequence.one_place_can_be_a_step = work.dialect == Dialect::kAcl;
  places->sequence.accesses = [&work, places = places.get()](
                                  size_t place, const OperatorSequence::Visitor& visitor) {
    const size_t call = places->calls[place];
    const auto visit = [&](const ByteAccess& access) { visitor(access); };
    const auto graph = places->held_by.find(GraphOf(work, call));
    if (graph != places->held_by.end()) {
      for (const size_t held : graph->second) work.VisitAccesses(held, visit);
    } else if (!places->stored[place]) {
      work.VisitAccesses(call, visit);
    }
  };
  return places;
}

Level LevelOf(const Work& work) {
  return work.dialect == Dialect::kAten ? Level::kAten : Level::kAcl;
}

// True if the steps of these calls of the interface are those of the leaves that made them: leaves
// say what trains, and their order depends on no other thread. A program that executes graphs of
// its own has its steps by these. Steps that are stored as found for the interface are not looked
// for again.
bool FollowsLeaves(const Work& work) {
  const bool found = !work.steps.empty() && work.steps.front().found_by == kFoundByPeriod;
  return work.dialect != Dialect::kAten && !found && work.trace->Models().empty() &&
         HoldsLevel(*work.trace, Level::kAten);
}

std::vector<StepRange> FindStepsOfLeaves(const Work& work) {
  try {
    Work leaves = LoadWork(*work.trace, Level::kAten);
    AssignSteps(leaves, nullptr);
    return StepsOfLeaves(work, StepRows(leaves));
  } catch (const Error&) {
    return {};  // all leaves are work of the host
  }
}

void WriteSteps(const Work& work, storage::Results* results) {
  // The table has the steps of all processes or of none.
  if (results == nullptr || work.steps.empty() || work.trace->process() != 0 ||
      !work.trace->Steps().empty() || PreferredLevel(*work.trace) != LevelOf(work)) {
    return;
  }
  results->ReplaceSteps(StepRows(work));
}

}  // namespace

std::vector<storage::Step> StoredSteps(const Work& work) {
  // Where the trace stores the steps of the leaves, the calls that these made come later.
  if (FollowsLeaves(work) && PreferredLevel(*work.trace) == Level::kAten) return StepRows(work);
  return StepsOf(*work.trace, LevelOf(work));
}

std::vector<storage::Step> StepRows(const Work& work) {
  // Beside a device, a step lasts until the next one begins: what the host does between them, such
  // as loading the next batch, is its work too.
  const bool beside_device =
      work.dialect == Dialect::kAten && HostWork(*work.trace).beside_device();
  std::vector<storage::Step> rows;
  for (size_t i = 0; i < work.steps.size(); ++i) {
    const StepRange& step = work.steps[i];
    int64_t last = step.last_call;
    if (beside_device && i + 1 < work.steps.size() && work.steps[i + 1].first == step.end) {
      last = work.steps[i + 1].first_call - 1;
    }
    rows.push_back({step.step, step.first_call, last, step.found_by});
  }
  return rows;
}

std::string WhyNoSteps(const Work& work) {
  const ThreadGroups groups(work);
  if (!groups.SideBySide()) return "no sequence of two operators or more repeats";
  return fmt::format(
      "{} groups of threads work side by side, each with streams and memory of its own, so that "
      "the order of their calls is chance",
      groups.working());
}

void AssignSteps(Work& work, storage::Results* results) {
  if (work.dialect == Dialect::kAcl && FollowsLeaves(work)) {
    std::vector<StepRange> steps = FindStepsOfLeaves(work);
    if (!steps.empty()) {
      for (const StepRange& step : work.steps) {
        for (int64_t call = step.first; call < step.end; ++call) work.calls[call].step = -1;
      }
      work.steps.clear();
      for (StepRange& step : steps) work.AddStep(std::move(step));
      WriteSteps(work, results);
      return;
    }
  }
  if (!work.steps.empty()) return;
  const std::unique_ptr<Places> places = PlacesOf(work);
  const std::vector<PlaceRange> found = FindPlaces(places->sequence);
  for (size_t step = 0; step < found.size(); ++step) {
    const size_t last = found[step].second - 1;
    const size_t end =
        step + 1 < found.size() ? places->calls[found[step + 1].first] : places->calls[last] + 1;
    work.AddStep({static_cast<int64_t>(step),
                  static_cast<int64_t>(places->calls[found[step].first]), static_cast<int64_t>(end),
                  kFoundByPeriod});
  }
  WriteSteps(work, results);
}

}  // namespace acltape::analyzer
