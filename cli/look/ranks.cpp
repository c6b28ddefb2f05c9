#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "analyzer/ranks/comparison.h"
#include "analyzer/ranks/steps.h"
#include "cli/frame/next_step.h"
#include "cli/frame/options.h"
#include "cli/look/commands.h"
#include "cli/tables/merged_traces.h"
#include "cli/tables/report.h"
#include "cli/terminal/table.h"
#include "storage/database.h"
#include "storage/error.h"
#include "storage/shell_word.h"

namespace acltape::cli {
namespace {

using analyzer::ranks::Communication;
using analyzer::ranks::Communicator;
using analyzer::ranks::Comparison;
using analyzer::ranks::GraphUse;
using analyzer::ranks::Lines;
using analyzer::ranks::Overlap;
using analyzer::ranks::RankFinding;
using analyzer::ranks::RankOverlap;
using analyzer::ranks::RankRule;
using analyzer::ranks::RankSteps;
using analyzer::ranks::RankTimes;
using analyzer::ranks::ReplicaReport;
using analyzer::ranks::Wait;

class RanksCommand final : public Command {
 public:
  std::string Name() const override { return "ranks"; }
  std::string Summary() const override {
    return "What the ranks of a program did together: who waits for whom, and where they disagree";
  }
  std::string Examples() const override {
    return "  acltape ranks t.db                      collectives, waits, disagreements, replicas\n"
           "  acltape ranks t.rank*.db               traces of single ranks, set side by side\n"
           "  acltape ranks t.db @table findings      that alone\n"
           "  acltape ranks t.db @format json\n"
           "  acltape ranks @rules                    the rules"_cli;
  }

  void Declare(CLI::App& app) override {
    app.add_option("trace", trace_, "The trace, with all ranks of the program");
    app.add_option("more", more_, "Traces of further ranks, where each has one of its own")
        ->option_text("TRACE...");
    AddFlag(app, "rules", rules_, "List the rules instead; needs no trace");
    AddOption(app, "rows", rows_,
              "Rows per table at most, 0: all; default 20 for @format table"_cli)
        ->check(AtLeast(0));
    AddFlag(app, "no-results", discard_);
    AddFormatOption(app, format_);
  }

  int Run() override {
    if (rules_) {
      fmt::print("{}", Rules().ToText(format_));
      return kExitFine;
    }
    if (trace_.empty()) {
      throw Error(ErrorKind::kUsage, "name the trace: acltape ranks t.db");
    }
    if (more_.empty()) return Show(trace_, discard_, nullptr);
    std::vector<std::string> traces{trace_};
    traces.insert(traces.end(), more_.begin(), more_.end());
    const TemporaryMerge merged(traces);
    const int code = Show(merged.path(), /*discard=*/true, &merged);
    std::string merge = "acltape merge";
    for (const std::string& trace : traces) merge += " " + storage::ShellWord(trace);
    SuggestNext(merge + " -o all.db");
    return code;
  }

 private:
  // `merged`: where the trace comes from, if it is of several; else null.
  int Show(const std::string& trace, bool discard, const TemporaryMerge* merged) const {
    const OpenedTrace opened(trace, discard, part());
    const storage::Reader& reader = opened.reader();
    analyzer::ChooseLevel(reader);  // refuses a level that the trace does not hold
    Comparison ranks(reader);
    RequireCollectives(reader, ranks.all);
    if (opened.results() != nullptr) Keep(ranks.findings, *opened.results());
    Report report;
    const RankSteps steps = FindSteps(reader, ranks.all);
    Table facts = Facts(ranks);
    if (!steps.by_process.empty()) facts.Add({"steps", StepsText(steps, ranks.all)});
    if (merged != nullptr) AddClocks(*merged, facts);
    report.Add("facts", std::move(facts));
    report.Add("findings", Findings(ranks.findings));
    report.Add("ranks", Ranks(ranks.all, analyzer::ranks::SumByRank(ranks.all, ranks.waits)));
    report.Add("steps", Steps(ranks.all, steps));
    report.Add("communicators", Communicators(ranks.all, ranks.communicators, ranks.waits));
    report.Add("communication", OfRanks(ranks.all, ranks.overlap));
    report.Add("transfers", Transfers(ranks.communicators, ranks.overlap));
    report.Add("waits", Waits(reader, ranks.all, ranks.waits, ranks.lines));
    report.Add("who waited for whom", Matrix(ranks.all, ranks.waits));
    fmt::print("{}", report.ToText(format_));
    const bool wrong = std::ranges::any_of(ranks.findings, [](const RankFinding& one) {
      return one.rule->severity == storage::Severity::kError;
    });
    return wrong ? kExitDifferences : kExitFine;
  }

  // A rank whose calls cannot be cut into steps leaves all without.
  static RankSteps FindSteps(const storage::Reader& reader, const Communication& all) {
    try {
      return analyzer::ranks::FindRankSteps(reader, all);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::kUsage) throw;
      return {};
    }
  }

  static std::string StepsText(const RankSteps& steps, const Communication& all) {
    if (!steps.looked_for) return "not looked for in so large a trace: mark them in the program";
    std::string text = steps.CountsText(all);
    return steps.guessed ? text + ", a guess by what repeats" : text;
  }

  // A row for each step that all ranks have.
  Table Steps(const Communication& all, const RankSteps& steps) const {
    Table table({"step", TimeColumn("shortest", "shortest_ns"), "shortest_on",
                 TimeColumn("longest", "longest_ns"), "longest_on",
                 TimeColumn("began_apart", "began_apart_ns"),
                 TimeColumn("ended_apart", "ended_apart_ns")});
    const size_t rows = Rows(steps.common());
    for (size_t step = 0; step < rows; ++step) {
      std::vector<std::pair<int64_t, int64_t>> times;  // how long, of which process
      std::vector<int64_t> begins;
      std::vector<int64_t> ends;
      for (const auto& [process, of_process] : steps.by_process) {
        times.emplace_back(of_process[step].ns(), process);
        begins.push_back(of_process[step].begin_ns);
        ends.push_back(of_process[step].end_ns);
      }
      const auto [shortest, longest] = std::ranges::minmax_element(times);
      const auto apart = [](const std::vector<int64_t>& moments) {
        const auto [first, last] = std::ranges::minmax_element(moments);
        return *last - *first;
      };
      table.Add({static_cast<int64_t>(step), NsCell(shortest->first, format_),
                 all.NameOf(shortest->second), NsCell(longest->first, format_),
                 all.NameOf(longest->second), NsCell(apart(begins), format_),
                 NsCell(apart(ends), format_)});
    }
    return table;
  }

  static void AddClocks(const TemporaryMerge& merged, Table& facts) {
    for (const storage::MergeSource& source : merged.sources()) {
      facts.Add({"clock of " + source.trace->path(), ClockText(source)});
    }
    facts.Add({"numbers of calls",
               "those of the traces together; `acltape merge` writes a trace "
               "that has them"});
  }

  static void RequireCollectives(const storage::Reader& reader, const Communication& all) {
    if (!all.runs.empty()) return;
    const bool others = reader.database().Integer(
                            "SELECT count(*) FROM op WHERE name LIKE 'c10d::%' OR "
                            "name LIKE '_c10d_functional::%'") > 0;
    throw Error(ErrorKind::kUsage,
                fmt::format("{} has no collective of HCCL{}", reader.path(),
                            others ? "; its collectives are those of PyTorch on the host, of which "
                                     "communicator and number are not recorded"
                                   : "; record a program of several ranks with the ACL level"));
  }

  size_t Rows(size_t all) const {
    const size_t otherwise = format_ == Format::kTable ? kRowsForPeople : 0;
    const size_t most = rows_ ? static_cast<size_t>(*rows_) : otherwise;
    return most == 0 ? all : std::min(all, most);
  }

  const char* TimeColumn(const char* people, const char* others) const {
    return format_ == Format::kTable ? people : others;
  }

  Table Rules() const {
    Table table({"rule", "severity", "what goes wrong", "what to do"});
    for (const RankRule& rule : analyzer::ranks::RankRules()) {
      table.Add({std::string(rule.id), std::string(storage::SeverityName(rule.severity)),
                 std::string(rule.title), std::string(rule.advice)});
    }
    return table;
  }

  static Table Facts(const Comparison& ranks) {
    const Communication& all = ranks.all;
    const ReplicaReport& replicas = ranks.replicas;
    Table table({"fact", "value"});
    int64_t runs = 0;
    for (const auto& [process, of_process] : all.runs)
      runs += static_cast<int64_t>(of_process.size());
    size_t meetings = 0;
    std::string missing;
    std::string ambiguous;
    for (const Communicator& one : ranks.communicators) {
      if (one.ambiguous) {
        ambiguous += (ambiguous.empty() ? "" : ", ") + one.name;
        continue;
      }
      if (one.runs.size() >= 2) meetings += one.meetings();
      if (static_cast<int64_t>(one.processes.size()) < one.ranks) {
        missing += fmt::format("{}{} has {} of {} ranks", missing.empty() ? "" : ", ", one.name,
                               one.processes.size(), one.ranks);
      }
    }
    table.Add({"ranks in the trace", static_cast<int64_t>(all.runs.size())});
    table.Add({"collectives and messages", runs});
    table.Add({"meetings compared between ranks", static_cast<int64_t>(meetings)});
    if (!missing.empty()) table.Add({"communicators that are not whole", missing});
    if (!ambiguous.empty()) {
      table.Add({"not compared: two processes have one rank of", ambiguous});
    }
    if (all.in_parts) {
      table.Add({"not compared",
                 "only parts of the program were recorded, so nobody knows which "
                 "collective of one rank is which of another"});
    }
    table.Add({"arrivals", all.on_device
                               ? "by the device's clock"
                               : "estimated from when the host issued them; record @device-times "
                                 "for when the device came to them"_cli});
    const bool messages = std::ranges::any_of(
        ranks.communicators, [](const Communicator& one) { return !one.messages.empty(); });
    if (messages && !all.on_device) {
      table.Add({"waits for messages", "not known: record @device-times"_cli});
    }
    if (ranks.overlap.graphs_left_out > 0) {
      table.Add({"executions of graphs with collectives", ranks.overlap.graphs_left_out});
      table.Add(
          {"time of communication", "without these: the device's clock tells of whole graphs"});
    }
    table.Add({"results of collectives compared", ranks.received.results});
    if (replicas.has_values) {
      table.Add({"tensors written again and again", replicas.tensors});
      table.Add({"of them replicas, equal on ranks", replicas.replicas});
      if (replicas.unpaired > 0) {
        table.Add({"of them without a counterpart", replicas.unpaired});
      }
    } else {
      table.Add({"values of replicas", "not compared: record @payload digest"_cli});
    }
    table.Add({"findings", static_cast<int64_t>(ranks.findings.size())});
    return table;
  }

  static Table Findings(const std::vector<RankFinding>& findings) {
    Table table({"rule", "severity", "rank", "call", "message", "what_to_do"});
    for (const RankFinding& one : findings) {
      table.Add({std::string(one.rule->id), std::string(storage::SeverityName(one.rule->severity)),
                 one.ranks, one.call_id, one.message, std::string(one.rule->advice)});
    }
    return table;
  }

  static void Keep(const std::vector<RankFinding>& findings, storage::Results& results) {
    for (const RankFinding& one : findings) {
      storage::Finding row;
      row.rule = one.rule->id;
      row.severity = one.rule->severity;
      row.call_id = one.call_id;
      row.message = one.message;
      row.evidence =
          nlohmann::json(
              {{"calls", one.calls}, {"ranks", one.ranks}, {"edit", std::string(one.rule->advice)}})
              .dump();
      results.AddFinding(row);
    }
    results.Commit();
  }

  // Ranks with their processes.
  static std::vector<std::pair<int64_t, int64_t>> InOrder(const Communication& all) {
    std::vector<std::pair<int64_t, int64_t>> order;
    for (const auto& [process, rank] : all.ranks) order.emplace_back(rank, process);
    std::ranges::sort(order);
    return order;
  }

  Table Ranks(const Communication& all, const std::map<int64_t, RankTimes>& sums) const {
    Table table({"rank", "process", "collectives", TimeColumn("sent", "sent_bytes"),
                 TimeColumn("received", "received_bytes"), TimeColumn("waited", "waited_ns"),
                 "came_last", TimeColumn("waited_for", "waited_for_ns"), "graphs", "executions"});
    for (const auto& [rank, process] : InOrder(all)) {
      const RankTimes& sum = sums.at(process);
      const auto used = all.graphs.find(process);
      const GraphUse graphs = used == all.graphs.end() ? GraphUse() : used->second;
      table.Add({rank, process, sum.collectives, BytesCell(sum.sent_bytes, format_),
                 BytesCell(sum.received_bytes, format_), NsCell(sum.waited_ns, format_), sum.late,
                 NsCell(sum.waited_for_ns, format_), graphs.captured, graphs.executions});
    }
    return table;
  }

  Table Communicators(const Communication& all, const std::vector<Communicator>& communicators,
                      const std::vector<Wait>& waits) const {
    Table table({"communicator", "ranks", "who", "collectives", "messages",
                 TimeColumn("waited", "waited_ns")});
    for (const Communicator& one : communicators) {
      std::string who;
      for (const auto& [rank, process] : one.processes) {
        who += (who.empty() ? "" : ", ") + all.NameOf(process);
      }
      size_t messages = 0;
      for (const auto& [rank, runs] : one.messages) messages += runs.size();
      int64_t waited = 0;
      for (const Wait& wait : waits) {
        if (wait.communicator == &one) waited += wait.waited_ns;
      }
      table.Add({TextCell(one.name), one.ranks, who, static_cast<int64_t>(one.meetings()),
                 static_cast<int64_t>(messages), NsCell(waited, format_)});
    }
    return table;
  }

  // By the device's clock: how long collectives and messages ran or waited, and how much of that
  // the rank's other work hides.
  Table OfRanks(const Communication& all, const Overlap& overlap) const {
    Table table({"rank", TimeColumn("communication", "communication_ns"),
                 TimeColumn("hidden", "hidden_ns"), TimeColumn("exposed", "exposed_ns"),
                 "hidden_percent"});
    for (const auto& [rank, process] : InOrder(all)) {
      const auto found = overlap.ranks.find(process);
      if (found == overlap.ranks.end()) continue;
      const RankOverlap& one = found->second;
      table.Add(
          {rank, NsCell(one.communication_ns, format_), NsCell(one.hidden_ns, format_),
           NsCell(one.exposed_ns(), format_),
           Percent(static_cast<double>(one.hidden_ns), static_cast<double>(one.communication_ns))});
    }
    return table;
  }

  Table Transfers(const std::vector<Communicator>& communicators, const Overlap& overlap) const {
    Table table({"communicator", TimeColumn("moved", "bytes"), TimeColumn("time", "time_ns"),
                 TimeColumn("each_second", "bytes_per_second")});
    for (const Communicator& one : communicators) {
      const auto moved = overlap.moved.find(&one);
      if (moved == overlap.moved.end()) continue;
      const auto rate = static_cast<int64_t>(static_cast<double>(moved->second.bytes) /
                                             static_cast<double>(moved->second.ns) * 1e9);
      table.Add({TextCell(one.name), BytesCell(moved->second.bytes, format_),
                 NsCell(moved->second.ns, format_), BytesCell(rate, format_)});
    }
    return table;
  }

  Table Waits(const storage::Reader& reader, const Communication& all,
              const std::vector<Wait>& waits, Lines& lines) const {
    std::vector<const Wait*> longest;
    for (const Wait& wait : waits) {
      if (wait.waited_ns > 0) longest.push_back(&wait);
    }
    std::ranges::stable_sort(longest, std::ranges::greater(),
                             [](const Wait* wait) { return wait->waited_ns; });
    Table table({"communicator", "number", "collective", "late_rank", TimeColumn("late", "late_ns"),
                 TimeColumn("waited", "waited_ns"), "where", "meanwhile"});
    for (size_t i = 0; i < Rows(longest.size()); ++i) {
      const Wait& wait = *longest[i];
      const auto& late = wait.late_run();
      const int64_t process = wait.communicator->processes.at(wait.late_rank);
      table.Add({TextCell(wait.communicator->name), static_cast<int64_t>(wait.number),
                 late.what->Text(), all.NameOf(process), NsCell(wait.late_ns(), format_),
                 NsCell(wait.waited_ns, format_), lines.Of(late.what->call_id),
                 TextCell(analyzer::ranks::LongestStay(reader, process, wait.first_ns, wait.last_ns,
                                                       late.call_id, lines)
                              .Text())});
    }
    return table;
  }

  // A row for each rank: how long it waited for each of the others.
  Table Matrix(const Communication& all, const std::vector<Wait>& waits) const {
    Table table({"rank", "waited_for", TimeColumn("time", "time_ns")});
    for (const auto& [pair, ns] : analyzer::ranks::SumByPair(waits)) {
      table.Add({all.NameOf(pair.first), all.NameOf(pair.second), NsCell(ns, format_)});
    }
    return table;
  }

  std::string trace_;
  std::vector<std::string> more_;
  bool rules_ = false;
  bool discard_ = false;
  std::optional<int64_t> rows_;
  Format format_ = Format::kTable;
};

}  // namespace

std::unique_ptr<Command> MakeRanksCommand() { return std::make_unique<RanksCommand>(); }

}  // namespace acltape::cli
