#include "page/page.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <unordered_map>

#include "analyzer/calls/level.h"
#include "analyzer/program/roles.h"
#include "page/against.h"
#include "page/breakdown.h"
#include "page/calls.h"
#include "page/document.h"
#include "page/facts.h"
#include "page/findings.h"
#include "page/measurements.h"
#include "page/memory.h"
#include "page/own_graphs.h"
#include "page/part_of_steps.h"
#include "page/plan_view.h"
#include "page/ranks.h"
#include "page/rows.h"
#include "page/source_lines.h"
#include "page/waits.h"

namespace acltape::page {
namespace {

using nlohmann::json;

// Finding the roles of buffers takes all arguments of all leaves in memory.
constexpr int64_t kMostLeavesForRoles = 200000;

// The roles of tensors are those of PyTorch's leaves, whatever level the plan is of.
std::unordered_map<int64_t, std::string> RolesOf(const storage::Reader& trace) {
  std::unordered_map<int64_t, std::string> roles;
  if (trace.CallCount(/*leaves_only=*/true) > kMostLeavesForRoles) return roles;
  try {
    storage::TracePart part = trace.part();
    if (analyzer::HoldsLevel(trace, analyzer::Level::kAten)) part.level = analyzer::Level::kAten;
    const storage::Reader leaves(trace.path(), part);
    analyzer::Program program = analyzer::LoadProgram(leaves);
    for (const auto& [buffer, role] : analyzer::ClassifyBuffers(program)) {
      roles[buffer] = analyzer::BufferRoleName(role);
    }
  } catch (const Error&) {
    // Without a program there are no roles; the curve then has one colour.
    roles.clear();
  }
  return roles;
}

}  // namespace

PageReport WritePage(const storage::Reader& trace, const PageOptions& options, std::ostream& out) {
  const auto tell = [&](const char* part, int64_t done, int64_t total) {
    if (options.progress) options.progress(part, done, total);
  };
  // Reads first what can be refused, before anything is written.
  const json searches = SearchesOf(trace, options.journal);
  std::string why;
  tell("program", 0, 1);
  // Steps, plan, graphs and roles are those of one process; the timeline shows all of them.
  const std::string process = ProcessOfSteps(trace);
  std::optional<storage::Reader> one;
  if (!process.empty()) one.emplace(trace.path(), storage::TracePart{process, trace.part().level});
  const storage::Reader& part = one ? *one : trace;
  std::optional<analyzer::Work> work = LeavesOf(part, why);
  if (!work && !options.plan_file.empty()) throw Error(ErrorKind::kTrace, why);
  tell("plan", 0, 1);
  json plan = work ? PlanView(part, *work, options.plan_file) : json{{"why_none", why}};
  const std::vector<storage::Step> steps = StepsFor(part, work);
  work.reset();
  tell("captures", 0, 1);
  json own_graphs = OwnGraphsOf(part);
  MarkOwnGraphs(own_graphs, plan);
  for (json& graph : own_graphs["graphs"]) graph.erase("operator_names");

  Document page(out);
  json facts = FactsOf(trace, steps);
  facts["title"] = options.title;
  facts["process_of_steps"] = part.process();
  page.AddJson("facts", TextOf(facts));
  page.AddJson("breakdown", TextOf(BreakdownOf(part, steps)));
  page.AddJson("waits", TextOf(WaitsOf(part)));
  page.AddJson("plan", TextOf(plan));
  plan = {};
  page.AddJson("searches", TextOf(searches));
  page.AddJson("runs", TextOf(RunsOf(trace)));
  page.AddJson("own_graphs", TextOf(own_graphs));
  tell("lint", 0, 1);
  const json findings = FindingsOf(part);
  page.AddJson("findings", TextOf(findings));
  page.AddJson("source_lines", TextOf(SourceLinesOf(trace, findings)));
  tell("ranks", 0, 1);
  page.AddJson("ranks", TextOf(RanksOf(trace)));
  tell("memory", 0, 1);
  page.AddJson("memory", TextOf(MemoryOf(trace, RolesOf(part))));
  const CallsWritten calls =
      WriteCalls(trace, options.most_calls, page,
                 [&](int64_t done, int64_t total) { tell("calls", done, total); });
  page.AddJson("extent", TextOf(json{{"shown", calls.shown}, {"all", calls.all}}));
  if (options.against != nullptr) {
    page.AddJson("against",
                 TextOf(AgainstView(trace, *options.against, [&](int64_t done, int64_t total) {
                   tell("diff", done, total);
                 })));
  }
  page.Finish();
  return {calls.shown, calls.all};
}

}  // namespace acltape::page
