#include <fmt/format.h>

#include <filesystem>

#include "analyzer/calls/host_work.h"
#include "analyzer/calls/record_more.h"
#include "analyzer/calls/unknown_memory.h"
#include "cli/frame/next_step.h"
#include "cli/frame/options.h"
#include "cli/look/commands.h"
#include "cli/look/query_table.h"
#include "cli/tables/failures_table.h"
#include "cli/tables/ledger_words.h"
#include "cli/tables/recording_cost_words.h"
#include "cli/tables/step_source.h"
#include "storage/database.h"
#include "storage/device_spans.h"
#include "storage/process_choice.h"
#include "storage/reader.h"
#include "storage/shell_word.h"
#include "storage/stored_totals.h"

namespace acltape::cli {
namespace {

// The first column of the first row, or 0.
int64_t Count(const storage::Reader& reader, const char* sql) {
  return reader.database().Integer(sql);
}

// Why a replay with values is possible or not, as far as the trace itself can say.
std::string Replayable(const storage::Reader& reader, int64_t leaves) {
  if (leaves == 0) return "no: it holds no leaves";
  const analyzer::MemoryCoverage memory = analyzer::CoverageOfMemory(reader);
  if (memory.lacks_values()) return "no: " + memory.Sentence();
  const std::string policy = reader.Meta("payload");
  if (policy == "none") {
    return "with @data synthesised only: no values were kept (record with @payload inputs or "
           "all)"_cli;
  }
  if (policy == "digest") {
    return "with @data synthesised only: digests were kept, but no values (record with @payload "
           "inputs or all)"_cli;
  }
  if (analyzer::LacksDeviceLevel(reader)) {
    return "without a reference, and not where operators are random: no results of the device were "
           "kept ("_cli +
           analyzer::HowToRecordMore(reader) + ")";
  }
  if (policy == "inputs") {
    return "yes; outputs are compared where the trace has a reference (@payload all keeps every "
           "one)"_cli;
  }
  return "yes, and every output can be compared";
}

class InfoCommand final : public Command {
 public:
  std::string Name() const override { return "info"; }
  std::string Summary() const override { return "Say what a trace holds and what it lacks"; }
  std::string Examples() const override {
    return "  acltape info t.db\n"
           "  acltape info t.db @format json"_cli;
  }

  void Declare(CLI::App& app) override {
    app.add_option("trace", trace_, "The trace")->required();
    AddFormatOption(app, format_);
  }

  int Run() override {
    const storage::Reader reader(trace_);
    const analyzer::lint::Failures failures = analyzer::lint::FindFailures(reader);
    SuggestNext(failures.First() == nullptr ? Next(reader)
                                            : "acltape lint " + storage::ShellWord(trace_));
    Report report;
    report.Add("trace", Facts(reader));
    report.Add("failures", FailuresTable(failures, format_));
    report.Add("meta", MetaTable(reader));
    AddQuery(report, reader, "threads", "threads");
    report.Add("steps", StepTable(reader));
    // Traces before schema version 5 have no such table, and most others one window.
    const char* kHasWindows = "SELECT count(*) FROM sqlite_master WHERE name = 'recorded_window'";
    if (Count(reader, kHasWindows) != 0 &&
        Count(reader, "SELECT count(*) FROM recorded_window") > 1) {
      AddQuery(report, reader, "windows", "windows");
    }
    // Traces of the first schema version have the table only once there is a row for it.
    if (Count(reader, "SELECT count(*) FROM sqlite_master WHERE name = 'witness'") != 0) {
      AddQuery(report, reader, "witnesses", "witnesses");
    }
    report.Add("ledger", LedgerTable(reader));
    fmt::print("{}", report.ToText(format_));
    return kExitFine;
  }

 private:
  // The steps of the process that puts work on a device, or of the first one with a leaf.
  std::string Next(const storage::Reader& reader) const {
    const std::string word = storage::ShellWord(trace_);
    const int64_t processes = reader.database().Integer("SELECT count(*) FROM process");
    if (processes > 1 && storage::DefaultProcess(reader) == 0) {
      return fmt::format("acltape steps {} @process {}"_cli, word,
                         reader.database().Integer(
                             "SELECT t.process_id FROM call_row c JOIN thread t USING (thread_id) "
                             "WHERE c.bits & 4 ORDER BY c.call_id LIMIT 1"));
    }
    return reader.Steps().empty() ? fmt::format("acltape query {} @name top_ops"_cli, word)
                                  : "acltape steps " + word;
  }

  Table Facts(const storage::Reader& reader) const {
    Table table({"fact", "value"});
    const auto add = [&](const char* fact, Cell value) { table.Add({fact, std::move(value)}); };
    // A number of bytes is a size with a unit of its own for people.
    const auto add_bytes = [&](const char* size, const char* fact, int64_t bytes) {
      add(format_ == Format::kTable ? size : fact, BytesCell(bytes, format_));
    };
    std::error_code ignored;
    const auto bytes = static_cast<int64_t>(std::filesystem::file_size(trace_, ignored));
    const storage::TraceCounts counts = storage::CountsOf(reader);
    add("file", trace_);
    add("state", reader.State());
    add_bytes("size", "bytes", bytes);
    add("calls", counts.calls);
    add("leaves", counts.leaves);
    const analyzer::HostWorkTotal host = analyzer::TotalHostWork(reader, {});
    if (host.leaves != 0) add("  on the host, beside a device", host.leaves);
    add("ops", counts.ops);
    add("signatures", Count(reader, "SELECT count(*) FROM signature"));
    add("buffers", counts.buffers);
    add("steps", Count(reader, "SELECT count(*) FROM step"));
    if (!reader.Steps().empty()) AddStepSource(table, reader);
    add("processes", Count(reader, "SELECT count(*) FROM process"));
    add("threads", Count(reader, "SELECT count(*) FROM thread"));
    add("snapshots", Count(reader, "SELECT count(*) FROM snapshot"));
    add("payloads", Count(reader, "SELECT count(DISTINCT digest) FROM payload"));
    add_bytes("size of the payloads", "payload bytes",
              Count(reader, "SELECT sum(bytes) FROM payload"));
    add_bytes("  as stored", "payload bytes stored",
              Count(reader, "SELECT sum(length(data)) FROM payload"));
    if (const auto busy = storage::FindDeviceBusy(reader)) {
      add("device busy", storage::DeviceBusyText(*busy));
    }
    const RecordingCostWords cost = CostWordsOf(reader);
    if (!cost.took.empty()) add("recording took", cost.took);
    if (!cost.waited.empty()) add("waits for room in full rings", cost.waited);
    if (!cost.values.empty()) add("values kept at", cost.values);
    add("replayable", Replayable(reader, counts.leaves));
    return table;
  }

  static Table MetaTable(const storage::Reader& reader) {
    Table table({"key", "value"});
    for (const auto& [key, value] : reader.AllMeta()) table.Add({key, value});
    return table;
  }

  // All of them for programs; the first few for people, who have `query --name steps` for the rest.
  Table StepTable(const storage::Reader& reader) const {
    constexpr size_t kShown = 4;
    Table table({"step", "first_call", "last_call", "found_by"});
    const auto steps = reader.Steps();
    for (const storage::Step& step : steps) {
      if (format_ == Format::kTable && table.rows().size() == kShown) {
        table.Add({fmt::format("... {} in all", steps.size()), Cell(), Cell(), Cell()});
        break;
      }
      const std::string words = format_ == Format::kTable ? EngineWords(step.found_by) : "";
      table.Add({step.step, step.first_call, step.last_call,
                 words.empty() ? step.found_by : "vLLM: " + words});
    }
    return table;
  }

  Table LedgerTable(const storage::Reader& reader) const {
    Table table({"severity", "kind", "count", "subject", "cause", "remedy"});
    for (const storage::LedgerEntry& entry : reader.Ledger()) {
      const LedgerWords words = WordsOf(entry);
      const bool people = format_ == Format::kTable && words.is_time;
      table.Add({std::string(storage::SeverityName(entry.severity)), entry.kind,
                 people ? Cell(words.count) : Cell(entry.count), entry.subject,
                 people ? words.cause : entry.cause, entry.remedy});
    }
    return table;
  }

  static void AddQuery(Report& report, const storage::Reader& reader, const char* title,
                       const char* name) {
    const storage::NamedQuery* query = storage::FindNamedQuery(name);
    if (query == nullptr) return;
    report.Add(title, QueryTable(reader, query->sql));
  }

  std::string trace_;
  Format format_ = Format::kTable;
};

}  // namespace

std::unique_ptr<Command> MakeInfoCommand() { return std::make_unique<InfoCommand>(); }

}  // namespace acltape::cli
