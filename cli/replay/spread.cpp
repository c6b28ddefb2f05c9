#include "cli/replay/spread.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "analyzer/calls/work.h"
#include "analyzer/program/leaves.h"
#include "cli/frame/command.h"
#include "cli/frame/forked.h"
#include "cli/tables/coverage_words.h"
#include "cli/tables/report.h"
#include "cli/tables/step_source.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/table.h"
#include "meaning/options.h"
#include "replayer/acl_level/replay_level.h"
#include "replayer/prove/spread.h"
#include "storage/error.h"
#include "storage/reader.h"

namespace acltape::cli {
namespace {

using replayer::prove::SpreadReport;
using replayer::prove::WrongOutput;

// The findings of one replay.
struct Replayed {
  std::vector<WrongOutput> outputs;
  std::vector<replayer::prove::GraphRange> graphs;
  int64_t compared = 0;
  analyzer::Coverage coverage;
};

Replayed FactsOf(const replayer::ReplayReport& report) {
  Replayed facts;
  facts.compared = report.compared;
  facts.coverage = report.coverage;
  for (const replayer::Mismatch& mismatch : report.mismatches) {
    WrongOutput wrong;
    wrong.call_id = mismatch.call_id;
    wrong.has_values = !mismatch.digest_only;
    if (wrong.has_values) {
      wrong.max_ulp = mismatch.metrics.nan_mismatches > 0 ? -1 : mismatch.metrics.max_ulp;
      wrong.max_rel = mismatch.metrics.max_rel;
    }
    facts.outputs.push_back(wrong);
  }
  for (const replayer::RegionReport& region : report.capture.regions) {
    if (region.captured) facts.graphs.push_back({region.first_call, region.last_call});
  }
  return facts;
}

// CBOR holds each number as it is, also infinities and NaN.
std::string Packed(const Replayed& facts) {
  nlohmann::json outputs = nlohmann::json::array();
  for (const WrongOutput& wrong : facts.outputs) {
    outputs.push_back({wrong.call_id, wrong.has_values, wrong.max_ulp, wrong.max_rel});
  }
  nlohmann::json graphs = nlohmann::json::array();
  for (const auto& graph : facts.graphs) graphs.push_back({graph.first_call, graph.last_call});
  std::string packed;
  nlohmann::json::to_cbor(
      {facts.compared, outputs, graphs, facts.coverage.computed, facts.coverage.covered}, packed);
  return packed;
}

Replayed Unpacked(const std::string& packed) {
  const nlohmann::json json = nlohmann::json::from_cbor(packed);
  Replayed facts;
  facts.compared = json.at(0);
  for (const nlohmann::json& row : json.at(1)) {
    WrongOutput& wrong = facts.outputs.emplace_back();
    wrong.call_id = row.at(0);
    wrong.has_values = row.at(1);
    wrong.max_ulp = row.at(2);
    wrong.max_rel = row.at(3);
  }
  for (const nlohmann::json& row : json.at(2)) facts.graphs.push_back({row.at(0), row.at(1)});
  facts.coverage = {json.at(3), json.at(4)};
  return facts;
}

std::string Replay(const SpreadRequest& request, replayer::Inputs inputs) {
  replayer::ReplayOptions options = request.options;
  options.inputs = inputs;
  options.streams = replayer::Streams::kLeaves;
  options.mismatch_limit = std::numeric_limits<int64_t>::max();
  const OpenedTrace trace(request.trace, request.discard, request.part);
  options.plan = request.plan.Read(trace.reader(), trace.results());
  Progress progress("replay");
  options.progress = [&](int64_t done, int64_t total) { progress.Update(done, total); };
  const replayer::ReplayReport report =
      replayer::acl_level::Replay(trace.reader(), options, trace.results());
  progress.Clear();
  if (!report.refusal.empty()) throw Error(ErrorKind::kCannotJudge, report.refusal);
  return Packed(FactsOf(report));
}

class SpreadTables {
 public:
  SpreadTables(const analyzer::Work& work, const SpreadReport& report, Format format)
      : work_(work),
        report_(report),
        shown_(format == Format::kTable ? kRowsForPeople : SIZE_MAX) {}

  Table Own() const {
    Table table({"call_id", "step", "op", "wrong", "max_ulp", "max_rel", "reaches calls",
                 "in steps", "the last of them", "ends at calls"});
    for (size_t i = 0; i < std::min(shown_, report_.own.size()); ++i) {
      const replayer::prove::OwnError& own = report_.own[i];
      table.Add({own.call_id, Step(own.call_id), Op(own.call_id),
                 own.beside_another ? "reads one of its graph that is wrong too" : "by itself",
                 own.worst.has_values ? Cell(own.worst.max_ulp) : Cell(),
                 own.worst.has_values ? Cell(own.worst.max_rel) : Cell(), own.reaches, own.steps,
                 own.last_call == 0 ? Cell() : Cell(own.last_call), own.absorbed});
    }
    return table;
  }

  Table Growth() const {
    Table table({"reads away", "calls", "max_ulp", "max_rel"});
    for (const replayer::prove::SpreadBand& band : report_.bands) {
      table.Add({band.first_hops == band.last_hops
                     ? fmt::format("{}", band.first_hops)
                     : fmt::format("{}-{}", band.first_hops, band.last_hops),
                 band.calls, band.has_values ? Cell(band.max_ulp) : Cell(),
                 band.has_values ? Cell(band.max_rel) : Cell()});
    }
    return table;
  }

  Table Ends() const {
    Table table({"call_id", "step", "op", "reads the wrong result of"});
    for (size_t i = 0; i < std::min(shown_, report_.absorbing.size()); ++i) {
      const replayer::prove::AbsorbingCall& call = report_.absorbing[i];
      table.Add({call.call_id, Step(call.call_id), Op(call.call_id), Described(call.source_call)});
    }
    return table;
  }

  Table Unexplained() const {
    Table table({"call_id", "step", "op"});
    for (size_t i = 0; i < std::min(shown_, report_.unexplained.size()); ++i) {
      const int64_t call = report_.unexplained[i];
      table.Add({call, Step(call), Op(call)});
    }
    return table;
  }

 private:
  size_t Index(int64_t call_id) const { return static_cast<size_t>(work_.Find(call_id)); }
  std::string Described(int64_t call_id) const { return work_.Describe(Index(call_id)); }
  std::string Op(int64_t call_id) const { return work_.op(Index(call_id)).FullName(); }
  Cell Step(int64_t call_id) const {
    const int64_t step = work_.calls[Index(call_id)].step;
    return step < 0 ? Cell() : Cell(step);
  }

  const analyzer::Work& work_;
  const SpreadReport& report_;
  const size_t shown_;
};

}  // namespace

SpreadResult RunSpread(const SpreadRequest& request) {
  // The one that needs more of the trace comes first.
  Replayed replays[2];
  for (const auto& [inputs, facts] : {std::pair{replayer::Inputs::kGolden, &replays[0]},
                                      std::pair{replayer::Inputs::kCarried, &replays[1]}}) {
    const Forked forked = CallForked([&, with = inputs] { return Replay(request, with); });
    if (forked.exit_code != 0) return {.exit_code = forked.exit_code};
    *facts = Unpacked(forked.result);
  }
  const auto& [golden, carried] = replays;
  const storage::Reader reader(request.trace, request.part);
  const analyzer::Work work = analyzer::LoadLeaves(reader, nullptr);
  const SpreadReport report =
      replayer::prove::FindSpread(work, carried.outputs, golden.outputs, golden.graphs);

  const bool different = !carried.outputs.empty() || !golden.outputs.empty();
  Table summary({"quantity", "value"});
  AddCoverage(summary, carried.coverage);
  summary.Add({"outputs compared", golden.compared});
  summary.Add({"different with golden inputs", static_cast<int64_t>(golden.outputs.size())});
  summary.Add({"different with carried inputs", static_cast<int64_t>(carried.outputs.size())});
  summary.Add({"calls wrong with golden inputs", static_cast<int64_t>(report.own.size())});
  summary.Add({"  of these right with carried ones", report.hidden});
  summary.Add({"calls that inherit", report.inherited});
  summary.Add({"calls that differ and read nothing that differs",
               static_cast<int64_t>(report.unexplained.size())});
  summary.Add({"calls that read wrong values and give right ones",
               static_cast<int64_t>(report.absorbing.size())});
  summary.Add({"verdict", different ? fmt::format("{} calls are wrong, {} inherit",
                                                  report.own.size(), report.inherited)
                          : golden.compared + carried.compared == 0 ? "nothing was compared"
                          : carried.coverage.TooLittle()            ? NotKnown(carried.coverage)
                                                                    : "equal: no error to follow"});
  if (!work.steps.empty()) AddStepSource(summary, work.steps.front().found_by);
  if (different) summary.Add({"reproduce", request.given.Text()});
  const SpreadTables tables(work, report, request.format);
  Report output;
  output.Add("summary", std::move(summary));
  output.Add("wrong calls", tables.Own());
  output.Add("growth", tables.Growth());
  output.Add("where errors end", tables.Ends());
  output.Add("unexplained", tables.Unexplained());
  fmt::print("{}", output.ToText(request.format));
  if (different) return {.exit_code = kExitDifferences};
  return {.nothing_compared = golden.compared + carried.compared == 0,
          .coverage = carried.coverage};
}

}  // namespace acltape::cli
