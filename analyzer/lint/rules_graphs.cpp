// Rules about executions of graphs that the program captured itself: the device accepts all that
// they name, and the values are wrong.
#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>

#include "analyzer/executions/baked_arguments.h"
#include "analyzer/executions/baked_branches.h"
#include "analyzer/executions/kept_results.h"
#include "analyzer/executions/lost_memory.h"
#include "analyzer/executions/missed_inputs.h"
#include "analyzer/executions/missed_results.h"
#include "analyzer/executions/overwritten_results.h"
#include "analyzer/executions/replaced_results.h"
#include "analyzer/executions/undefined_reads.h"
#include "analyzer/executions/warm_state.h"
#include "analyzer/lint/rule.h"

namespace acltape::analyzer::lint {
namespace {

using executions::OwnGraph;
using executions::OwnGraphs;

std::string Times(size_t count) { return count == 1 ? "once" : std::to_string(count) + " times"; }

// "call 128 aclmdlRIExecuteAsync at train.py:12 (step)"
std::string CallText(const LintContext& context, int64_t call_id) {
  const Work& calls = *context.options.graphs->calls;
  const int64_t call = calls.Find(call_id);
  if (call < 0) return "call " + std::to_string(call_id);
  const std::string place = context.places_of_calls.Text(static_cast<size_t>(call));
  return calls.Describe(static_cast<size_t>(call)) + (place.empty() ? "" : " at " + place);
}

std::string ExecutionText(const LintContext& context, uint32_t turn) {
  return CallText(context, context.options.graphs->turns[turn].call_id);
}

std::function<int32_t(size_t)> PlaceOf(const LintContext& context) {
  return [&](size_t entry) { return context.places.Of(entry); };
}

Found::Options OfGraphs() {
  static constexpr Codes kNoCodes = {};
  Found::Options options;
  options.codes = &kNoCodes;
  options.of_graphs = true;
  options.merged = true;
  return options;
}

bool HasGraphs(const LintContext& context) {
  return context.options.graphs != nullptr && context.options.graphs->HasExecutions();
}

}  // namespace

// A program on the interface frees its memory itself, which LINT-10 is about.
void CheckLostMemory(const LintContext& context, Found& found) {
  if (!HasGraphs(context) || context.work.dialect == Dialect::kAcl) return;
  for (const executions::LostMemory& lost : executions::FindLostMemory(*context.options.graphs)) {
    Found::Options options = OfGraphs();
    options.other = lost.new_owner >= 0 ? lost.new_owner : lost.maker;
    const std::string tensor =
        lost.maker < 0
            ? "a tensor that has ended"
            : "the tensor of " + Named(static_cast<size_t>(lost.maker)) + ", which has ended";
    std::string since = "; the memory may go to another tensor at any time";
    if (lost.new_owner >= 0) {
      since = lost.write ? "; it writes over what " + Named(static_cast<size_t>(lost.new_owner)) +
                               " has put there since"
                         : "; it reads what " + Named(static_cast<size_t>(lost.new_owner)) +
                               " has put there since";
    }
    found.Add(lost.user,
              Named(lost.user) + " in a graph " + (lost.write ? "writes" : "reads") +
                  " the memory of " + tensor + since + "; the graph was executed so " +
                  Times(lost.executions) + ", first by " + ExecutionText(context, lost.execution),
              options);
  }
}

void FindKeptResults(const LintContext& context, Found& found) {
  if (!HasGraphs(context)) return;
  for (const executions::KeptResult& kept :
       executions::FindKeptResults(*context.options.graphs, PlaceOf(context))) {
    Found::Options options = OfGraphs();
    options.other = kept.reader;
    found.Add(
        kept.writer,
        Named(kept.writer) + " puts the results of all executions into one tensor: those of " +
            Counted(kept.unread, "execution") + " were overwritten before anybody read them, and " +
            Named(kept.reader) + " reads the result of the last one " + Times(kept.reads) +
            ", executed by " + ExecutionText(context, kept.execution),
        options);
  }
}

void FindOverwrittenResults(const LintContext& context, Found& found) {
  if (!HasGraphs(context)) return;
  for (const executions::OverwrittenResult& result :
       executions::FindOverwrittenResults(*context.options.graphs)) {
    Found::Options options = OfGraphs();
    options.other = result.reader;
    found.Add(result.writer,
              Named(result.writer) +
                  " makes a result in memory that another graph of the pool uses too: " +
                  ExecutionText(context, result.execution) + " wrote over it, by " +
                  Named(result.other) + ", before " + Named(result.reader) + " read it",
              options);
  }
}

void CheckReplacedResult(const LintContext& context, Found& found) {
  if (!HasGraphs(context)) return;
  for (const executions::ReplacedResult& replaced :
       executions::FindReplacedResults(*context.options.graphs)) {
    Found::Options options = OfGraphs();
    options.other = replaced.replacement;
    found.Add(replaced.writer,
              Named(replaced.writer) +
                  " in a graph goes on writing the tensor that it made at the "
                  "capture, in whose place the program has put that of " +
                  Named(replaced.replacement) + "; after " +
                  ExecutionText(context, replaced.execution) + ", " + Named(replaced.reader) +
                  " reads the new one, which no execution writes",
              options);
  }
}

void CheckUndefinedRead(const LintContext& context, Found& found) {
  if (context.options.graphs == nullptr) return;
  if (context.work.dialect == Dialect::kAcl) {
    FindUnwritten(context, found);
    return;
  }
  for (const executions::UndefinedRead& read :
       executions::FindUndefinedReads(*context.options.graphs)) {
    Found::Options options = OfGraphs();
    options.other = read.allocation;
    found.Add(read.reader,
              Named(read.reader) + " reads " + std::to_string(read.elements) + " of " +
                  Counted(static_cast<size_t>(read.of_elements), "element") +
                  " that nothing has written, in the memory of " + Named(read.allocation) +
                  "; a value made of them comes to the host in " + Named(read.host_read),
              options);
  }
}

void FindBaked(const LintContext& context, bool lists, Found& found) {
  if (!HasGraphs(context)) return;
  const OwnGraphs& graphs = *context.options.graphs;
  for (const executions::BakedArgument& baked :
       executions::FindBakedArguments(graphs, PlaceOf(context))) {
    if (baked.list != lists) continue;
    Found::Options options = OfGraphs();
    options.other = baked.other;
    options.subject = "captured " + baked.name;
    found.Add(baked.entry,
              Named(baked.entry) + ": argument " + baked.name + " is " + baked.value +
                  " in the graph and " + baked.other_value +
                  " where the same lines ran eagerly on equal inputs, " +
                  Counted(baked.values, "value") +
                  " over all runs; the graph keeps its own in each of its " +
                  Counted(graphs.graphs[baked.graph].executed.size(), "execution"),
              options);
  }
}

void CheckBakedBranch(const LintContext& context, Found& found) {
  if (!HasGraphs(context) || context.work.dialect == Dialect::kAcl) return;
  const OwnGraphs& graphs = *context.options.graphs;
  std::map<std::pair<std::string, std::string>, int32_t> functions;
  std::unordered_map<int32_t, int32_t> of_place;
  const auto function_of = [&](size_t entry) {
    const int32_t place = context.places.Of(entry);
    const auto [known, is_new] = of_place.try_emplace(place, 0);
    const SourceLine* line = is_new ? context.places.Line(entry) : nullptr;
    if (line != nullptr) {
      const auto next = static_cast<int32_t>(functions.size() + 1);
      known->second = functions.try_emplace({line->file, line->function}, next).first->second;
    }
    return known->second;
  };
  for (const executions::BakedBranch& branch :
       executions::FindBakedBranches(graphs, PlaceOf(context), function_of)) {
    const int64_t call = branch.held >= 0 ? branch.held : branch.eager;
    Found::Options options = OfGraphs();
    options.other =
        branch.held >= 0 && branch.eager >= 0 ? branch.eager : static_cast<int64_t>(branch.common);
    const std::string both = "an eager run of the same function on equal inputs, which has " +
                             Named(branch.common) + " too, ";
    std::string text = Named(static_cast<size_t>(call));
    if (branch.held < 0) {
      text += " (" + Counted(branch.eager_work, "operator") + " in all) is in " + both +
              "and the graph was captured without it";
    } else if (branch.eager < 0) {
      text += " (" + Counted(branch.held_work, "operator") + " in all) is in the graph; " + both +
              "went without it";
    } else {
      text += " is in the graph; " + both + "took another branch, by " +
              Named(static_cast<size_t>(branch.eager));
    }
    found.Add(call,
              text + "; the graph keeps the branch of its capture in each of its " +
                  Counted(graphs.graphs[branch.graph].executed.size(), "execution"),
              options);
  }
}

void CheckMissedInput(const LintContext& context, Found& found) {
  if (!HasGraphs(context) || context.work.dialect == Dialect::kAcl) return;
  for (const executions::MissedInput& missed :
       executions::FindMissedInputs(*context.options.graphs, PlaceOf(context))) {
    Found::Options options = OfGraphs();
    options.other = missed.reader;
    const std::string first = "(the first is " + ExecutionText(context, missed.execution) + ")";
    found.Add(missed.input,
              missed.late
                  ? Named(missed.input) + " copies the input of a round, which was there before, " +
                        "after the execution that needs it, " + Times(missed.rounds) + " " + first +
                        ": " + Named(missed.reader) +
                        " in the graph reads that of the round before, at first what the tensor "
                        "held at the capture, and nothing reads the last one"
                  : Named(missed.input) + " makes a tensor like the one that " +
                        Named(missed.reader) + " in a graph reads, in " +
                        Counted(missed.rounds, "round") +
                        ", and nothing reads it: nobody copies it into the tensor of the capture, "
                        "with whose old content the graph goes on " +
                        first,
              options);
  }
}

void CheckMissedResult(const LintContext& context, Found& found) {
  if (!HasGraphs(context) || context.work.dialect == Dialect::kAcl) return;
  const OwnGraphs& graphs = *context.options.graphs;
  for (const executions::OtherResult& other :
       executions::FindOtherResults(graphs, PlaceOf(context))) {
    Found::Options options = OfGraphs();
    options.other = other.writer;
    found.Add(other.reader,
              Named(other.reader) + " reads what a graph made that was not executed for it, by " +
                  Named(other.writer) + ", in " + Counted(other.rounds, "round") +
                  "; another graph of the same lines was (the first time by " +
                  ExecutionText(context, other.execution) +
                  "), and nothing ever reads its result, by " + Named(other.made),
              options);
  }
  for (const executions::DroppedResult& dropped :
       executions::FindDroppedResults(graphs, PlaceOf(context))) {
    Found::Options options = OfGraphs();
    options.other = dropped.update;
    found.Add(dropped.writer,
              Named(dropped.writer) +
                  " in a graph goes on writing the tensor that it made at the capture, of which "
                  "the program has let go (a gradient by zero_grad(set_to_none=True)), first in " +
                  ExecutionText(context, dropped.execution) + "; before the capture " +
                  Named(dropped.update) +
                  " read what the line makes and updated what the graph reads, and since then it "
                  "did nothing",
              options);
  }
}

void CheckEmptyGraph(const LintContext& context, Found& found) {
  if (!HasGraphs(context)) return;
  for (const OwnGraph& graph : context.options.graphs->graphs) {
    if (graph.launches != 0 || graph.outside.empty() || graph.executed.empty()) continue;
    Found::Options options = OfGraphs();
    options.other = graph.outside.back();
    found.Add(graph.outside.front(),
              Named(graph.outside.front()) + " and all work after it up to " +
                  Named(graph.outside.back()) + ", " + Counted(graph.outside.size(), "operator") +
                  " in all, ran eagerly on stream " + std::to_string(graph.outside_stream) +
                  " while another stream captured: the graph is empty, and its " +
                  Counted(graph.executed.size(), "execution") + " (the first is " +
                  ExecutionText(context, graph.executed.front()) + ") repeat nothing of it",
              options);
  }
}

void CheckWarmState(const LintContext& context, Found& found) {
  if (!HasGraphs(context)) return;
  for (const executions::WarmState& state :
       executions::FindWarmState(*context.options.graphs, PlaceOf(context))) {
    Found::Options options = OfGraphs();
    options.other = state.warm_up;
    found.Add(state.writer,
              Named(state.writer) + " in a graph updates what the graph reads; it ran eagerly " +
                  Times(state.warm_ups) + " before the capture, last by " + Named(state.warm_up) +
                  ", and nothing set the tensor back before the first execution, " +
                  ExecutionText(context, state.execution),
              options);
  }
}

void CheckOvertake(const LintContext& context, Found& found) {
  if (context.options.overtakes == nullptr || context.options.graphs == nullptr) return;
  const Work& calls = *context.options.graphs->calls;
  for (const executions::Overtake& overtake : *context.options.overtakes) {
    Found::Options options = OfGraphs();
    found.Add(overtake.leaf,
              CallText(context, calls.calls[overtake.call].call_id) +
                  " was issued while launches still waited in the queue of the adapter, that of " +
                  Named(overtake.leaf) + " among them (" + calls.Describe(overtake.launch) +
                  "); both touch the same bytes, and on the device the call came first",
              options);
  }
}

}  // namespace acltape::analyzer::lint
