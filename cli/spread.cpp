#include "cli/spread.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "analyzer/calls/work.h"
#include "analyzer/program/leaves.h"
#include "cli/command.h"
#include "cli/installation.h"
#include "cli/nothing_compared.h"
#include "cli/step_source.h"
#include "cli/table.h"
#include "meaning/options.h"
#include "replayer/prove/spread.h"
#include "storage/error.h"
#include "storage/reader.h"

namespace acltape::cli {
namespace {

using replayer::prove::SpreadReport;
using replayer::prove::WrongOutput;

// The report that one replay printed.
struct Replayed {
  int exit_code = 0;
  std::vector<WrongOutput> outputs;
  std::vector<replayer::prove::GraphRange> graphs;
  int64_t compared = 0;
  std::string reproduce;
};

// A replay that ends with another code has printed an error and no report.
bool HasReport(int exit_code) {
  return exit_code <= kExitDifferences || exit_code == kExitCannotJudge;
}

// Numbers that JSON cannot hold are texts.
double NumberIn(const nlohmann::json& value) {
  if (value.is_number()) return value.get<double>();
  if (value == "inf") return HUGE_VAL;
  return std::numeric_limits<double>::quiet_NaN();
}

Replayed Replay(const std::string& trace, const std::vector<std::string>& words,
                const char* inputs) {
  std::vector<std::string> command{"/proc/self/exe", "replay", trace};
  command.insert(command.end(), words.begin(), words.end());
  for (const char* word : {"@inputs"_cli, inputs, "@format"_cli, "json", "@mismatches"_cli}) {
    command.emplace_back(word);
  }
  command.push_back(std::to_string(std::numeric_limits<int64_t>::max()));
  const ProgramOutput output = RunProgram(command, Complaints::kShown);
  Replayed replayed;
  replayed.exit_code = output.started ? output.exit_code : kExitDevice;
  if (!HasReport(replayed.exit_code)) return replayed;
  const nlohmann::json report = nlohmann::json::parse(output.text);
  for (const nlohmann::json& row : report.at("differences")) {
    WrongOutput wrong;
    wrong.call_id = row.at("call_id");
    wrong.has_values = !row.at("max_ulp").is_null();
    if (wrong.has_values) {
      wrong.max_ulp = row.at("max_ulp");
      wrong.max_rel = NumberIn(row.at("max_rel"));
    }
    replayed.outputs.push_back(wrong);
  }
  for (const nlohmann::json& row : report.value("regions", nlohmann::json::array())) {
    if (row.at("kind") != "captured") continue;
    replayed.graphs.push_back({row.at("first_call"), row.at("last_call")});
  }
  for (const nlohmann::json& row : report.at("summary")) {
    if (row.at("quantity") == "outputs compared") replayed.compared = row.at("value");
    if (row.at("quantity") == "reproduce") replayed.reproduce = row.at("value");
  }
  return replayed;
}

// The replay that showed it, with --spread in place of the choice of inputs.
std::string SpreadCommand(const Replayed& carried, const Replayed& golden) {
  std::string command = carried.reproduce.empty() ? golden.reproduce : carried.reproduce;
  const std::string choice = " @inputs golden"_cli;
  const size_t at = command.find(choice);
  if (at != std::string::npos) command.erase(at, choice.size());
  return command + " @spread"_cli;
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

int RunSpread(const std::string& trace, const std::vector<std::string>& words, Format format) {
  // The one that needs more of the trace comes first.
  const Replayed golden = Replay(trace, words, "golden");
  if (!HasReport(golden.exit_code)) return golden.exit_code;
  const Replayed carried = Replay(trace, words, "carried");
  if (!HasReport(carried.exit_code)) return carried.exit_code;
  const storage::Reader reader(trace);
  const analyzer::Work work = analyzer::LoadLeaves(reader, nullptr);
  const SpreadReport report =
      replayer::prove::FindSpread(work, carried.outputs, golden.outputs, golden.graphs);

  const bool different = !carried.outputs.empty() || !golden.outputs.empty();
  Table summary({"quantity", "value"});
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
                                                                    : "equal: no error to follow"});
  if (!work.steps.empty()) AddStepSource(summary, work.steps.front().found_by);
  if (different) summary.Add({"reproduce", SpreadCommand(carried, golden)});
  const SpreadTables tables(work, report, format);
  Report output;
  output.Add("summary", std::move(summary));
  output.Add("wrong calls", tables.Own());
  output.Add("growth", tables.Growth());
  output.Add("where errors end", tables.Ends());
  output.Add("unexplained", tables.Unexplained());
  fmt::print("{}", output.ToText(format));
  if (different) return kExitDifferences;
  if (golden.compared + carried.compared > 0) return kExitFine;
  return kExitCannotJudge;  // the replays have said why
}

}  // namespace acltape::cli
