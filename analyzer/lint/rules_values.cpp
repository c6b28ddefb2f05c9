// Rules about the values that calls computed. They need a trace that keeps statistics of results
// (`record --payload digest` or `all`).
#include <algorithm>
#include <cmath>
#include <map>

#include "analyzer/lint/leftovers.h"
#include "analyzer/lint/rule.h"
#include "storage/checked_row.h"
#include "storage/database.h"
#include "storage/query.h"

namespace acltape::analyzer::lint {
namespace {

// The answer of the query `first_nan` about one call.
struct TurnedNan {
  int64_t elements = 0;
  std::string inputs;  // "finite", "Inf", "partly not known"
};

// The calls of which a result holds NaN though no input is known to, by call id.
std::map<int64_t, TurnedNan> FindTurnedNan(const storage::Reader& trace) {
  std::map<int64_t, TurnedNan> turned;
  // Most traces have none, which one look at the statistics tells.
  storage::Database& database = trace.database();
  if (database.Integer("SELECT 1 FROM snapshot WHERE nan_count > 0 LIMIT 1") == 0) return turned;
  // call_id, step, op, turns, inputs, nan_count ...
  storage::Statement rows(database, storage::FindNamedQuery("first_nan")->sql);
  const storage::CheckedRow row(rows, trace.path(), "snapshot");
  while (rows.Next()) {
    if (row.Text(3, "turns") != "NaN") continue;
    TurnedNan& one = turned[row.Id("call_id")];
    one.elements += row.Integer(5, "nan_count", 0, storage::kMostBytes);
    one.inputs = row.Text(4, "inputs");
  }
  return turned;
}

// True if the program itself hands NaN to the call, as in full_like(x, nan).
bool IsGivenNan(const WorkForm& form) {
  return std::any_of(form.arguments->begin(), form.arguments->end(),
                     [](const storage::ArgumentValue& argument) {
                       return std::isnan(argument.real) ||
                              std::any_of(argument.reals.begin(), argument.reals.end(),
                                          [](double real) { return std::isnan(real); });
                     });
}

// False if the user picked some captures, steps or calls, and this call lies in none of them.
bool IsLookedAt(const LintContext& context, size_t call) {
  if (!context.options.wanted && context.options.stretch.first_call == 0) return true;
  return std::any_of(context.stretches.begin(), context.stretches.end(),
                     [&](const Stretch& stretch) {
                       return (stretch.first <= call && call < stretch.end) ||
                              (stretch.step_first <= call && call < stretch.step_end);
                     });
}

std::string InputsText(const std::string& inputs) {
  if (inputs == "Inf") return "its inputs hold infinities, but no NaN";
  if (inputs == "finite") return "its inputs are finite";
  return "no input is known to hold NaN, but the contents of some are not known";
}

}  // namespace

void CheckTurnsNan(const LintContext& context, Found& found) {
  const Work& work = context.work;
  const executions::OwnGraphs* graphs = context.options.graphs;
  const Work* calls = graphs != nullptr ? graphs->calls : nullptr;
  Leftovers leftovers(work, context.options.leaves, work.dialect == Dialect::kAcl ? &work : calls);
  for (const auto& [call_id, turned] : FindTurnedNan(*work.trace)) {
    const int64_t index = work.Find(call_id);  // -1: a call of the other level
    if (index < 0) continue;
    const auto call = static_cast<size_t>(index);
    // New memory holds whatever was there.
    const WorkForm& form = work.form(call);
    if (form.kind == LeafKind::kAllocation || IsGivenNan(form) || !IsLookedAt(context, call)) {
      continue;
    }
    if (leftovers.AreCopiedBy(call)) continue;
    Found::Options options;
    options.merged = true;
    found.Add(index,
              Named(call) + " has NaN in " + std::to_string(turned.elements) +
                  (turned.elements == 1 ? " element" : " elements") + " of its results; " +
                  InputsText(turned.inputs),
              options);
  }
}

}  // namespace acltape::analyzer::lint
